import ConfluxLog
import ConfluxProtocol
@_exported import struct ConfluxZeroMQ.CurveKeyPair
@_exported import struct ConfluxZeroMQ.CurvePublicKey
@_exported import enum ConfluxZeroMQ.KeyFile
@_exported import struct ConfluxZeroMQ.KeyFileError
import enum ConfluxZeroMQ.SocketSecurity

/// The configuration of a sequencer.
public struct SequencerConfiguration: Sendable {
    /// Where the log is kept.
    public enum Storage: Sendable {
        /// In a folder, with SQLite.
        ///
        /// - Parameters:
        ///   - path: The folder; it is created if it does not exist.
        ///   - settings: The log's settings, above all its durability.
        case folder(String, SQLiteLogSettings)
        /// In memory: each start has a new log. For tests, and for state that may be lost.
        case memory
        /// The same, with another bound than 1 GiB.
        ///
        /// - Parameter limitBytes: The most bytes that the log takes.
        case boundedMemory(limitBytes: Int)
        /// In an engine that you supply, such as `EtcdLog`. If another program claims the log there, the
        /// sequencer ends, as `superseded`.
        ///
        /// - Parameter open: Opens the log: when the sequencer starts, and again, on another thread, each
        ///   time that the log has failed.
        case opened(by: @Sendable () throws(LogError) -> any ActionLog)
        /// In an engine that several sequencers may open, such as `EtcdLog`: one serves, and the others stand
        /// by. This sequencer serves while it has the term, and stands by while another one has it.
        ///
        /// - Parameter open: Opens the log: when the sequencer starts, and again, on another thread, each
        ///   time that the log has failed.
        case shared(by: @Sendable () throws(LogError) -> any SharedActionLog)

        var isShared: Bool { if case .shared = self { true } else { false } }
        var isMemory: Bool {
            switch self {
            case .memory, .boundedMemory: true
            case .folder, .opened, .shared: false
            }
        }
    }

    /// Who may connect.
    public enum Access: Sendable {
        /// Processes on this machine: the sequencer starts only if its addresses are on the loopback
        /// interface, or not on a network at all. Nothing is encrypted.
        case local
        /// Anybody who can reach the addresses, from any machine. They may read, dispatch and drop what they
        /// like, and anybody on the network path may read and change the traffic.
        case insecure
        /// Only peers that have one of these keys. Connections are encrypted, and nobody can impersonate the
        /// sequencer without the secret half of its key pair. See ``Sequencer/authorize(_:)``.
        ///
        /// - Parameters:
        ///   - own: The sequencer's key pair.
        ///   - authorized: The keys that may connect.
        ///   - reading: Reads the authorised keys again, when ``Sequencer/reload()`` or a client asks for it.
        ///     It runs on a thread of its own, one call at a time.
        case keys(
            _ own: CurveKeyPair, authorized: AuthorizedKeys,
            reading: (@Sendable () -> Result<AuthorizedKeys, AuthorizedKeysError>)? = nil)

        var security: SocketSecurity {
            if case .keys(let own, _, _) = self { .server(own) } else { .none }
        }
    }

    /// The address that nodes connect to: `tcp://host:port`, with port 0 for a free one, or `ipc://path` if all of
    /// them are on this machine.
    public var bind: String
    /// Who may connect.
    public var access: Access = .local
    /// The address at which nodes reach this sequencer, as the other sequencers of a shared log tell them:
    /// `tcp://host:port`. By default the bound address, which then must not be a wildcard.
    public var advertise: String?
    /// The address of the feed; nil for the port after that of `bind`, or for a free one if that port is 0. With a
    /// path, nil adds `.feed` to it.
    public var feed: String?
    /// The addresses of relays that the sequencer announces to nodes, 15 at most: each node then has its feed from one
    /// of them, and from the sequencer itself if it can reach none. A host of `*` stands for the host that the node
    /// connected to.
    public var relays: [String] = []
    /// Where the log is kept.
    public var storage: Storage
    /// The most bytes of one payload.
    public var payloadBytesMax: UInt32 = 1 << 20
    /// How many bytes of commits follow the newest checkpoint when the next one is made, at least 1. A start
    /// reads about that much of the log. If a checkpoint is larger than this, the next one is due after as
    /// many bytes as the checkpoint has. Checkpoints are made on a thread of their own. Meanwhile it needs
    /// memory for a second copy of the sequencer's state.
    public var checkpointBytes = 64 << 20
    /// How much of the log is kept beyond what somebody may need (rule 20). If the log exceeds one of these
    /// bounds, it discards everything that neither a replica nor a start can need. A start needs the entries
    /// after the older of the last two checkpoints. So nothing is discarded before there are two checkpoints,
    /// which takes twice ``checkpointBytes`` of log.
    public var retention = Retention()
    /// The longest pause before a new term begins after the log has failed, for example because of a disk
    /// error or a full disk. The sequencer tries as often as it takes; its pauses double from 100 ms up to
    /// this one. Each time it opens the log anew and reads its end, and nodes resubmit actions without an
    /// outcome. If nil, the sequencer ends at the first failure. It always ends if another one has taken
    /// over, if the log is damaged, or if the log fails before the first term serves.
    public var renewalPauseMax: Duration? = .seconds(5)
    /// How long the serving thread polls for the next message before it sleeps, 10 ms at most; zero if it sleeps at
    /// once. Polling shortens the time to an outcome, and keeps a processor busy meanwhile, unless other threads need
    /// it. The thread polls only if the last message took no longer than this to arrive. Set it to zero in a container
    /// with a quota of processor time. With one processor it has no effect.
    public var busyPollMax = Duration.microseconds(200)
    /// Changes the protocol's bounds, after all other settings are applied.
    public var adjust: @Sendable (inout SequencerSettings) -> Void = { _ in }

    /// Makes a configuration.
    ///
    /// - Parameters:
    ///   - bind: The address that nodes connect to.
    ///   - storage: Where the log is kept.
    public init(bind: String, storage: Storage) {
        self.bind = bind
        self.storage = storage
    }
}

/// Why a sequencer could not start.
public struct SequencerError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure. The codes are stable, so a program can depend on them.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        /// An address is invalid.
        case invalidAddress
        /// An address can be reached from other machines, and anybody there might connect.
        case insecure
        /// Another process listens at the address.
        case addressInUse
        /// The system does not let this process listen at the address: the folder of an `ipc` path does not exist, or
        /// it lacks a permission.
        case addressUnavailable
        /// The folder can't be used, or another sequencer uses it.
        case logUnavailable
        /// A setting is out of bounds.
        case invalidSetting
        /// Another error of the system.
        case failed
    }

    /// The kind of failure.
    public let code: Code
    /// What happened, and what to do.
    public let message: String

    /// The code and the message.
    public var description: String { "\(code.rawValue): \(message)" }
}

/// An event that a sequencer reports.
public enum SequencerEvent: Sendable {
    /// What a standby knows.
    public struct Standing: Sendable, Hashable {
        /// The address of the serving sequencer; nil if none is known.
        public var server: String?
        /// Why the log can't be followed; nil if it can.
        public var failure: String?
    }

    /// A term has begun: nodes are served.
    case serving(log: LogID, epoch: Epoch, last: SequenceNumber)
    /// A note of the machine.
    case note(SequencerNote)
    /// So many more notes of one kind were not reported in the last span. Peers alone can cause these kinds:
    /// `unreadable`, `challenged`, `historyLost`, `joined` and `left`.
    case omitted(String, count: Int, span: Duration)
    /// A checkpoint at this number was saved, with so many bytes.
    case checkpointSaved(SequenceNumber, bytes: Int)
    /// A checkpoint could not be made or saved. The log is complete without it, but starting takes longer.
    case checkpointFailed(message: String)
    /// The file of authorised keys was read again; so many keys may connect.
    case authorized(count: Int)
    /// The file of authorised keys could not be read again; the former keys remain.
    case authorizationFailed(message: String)
    /// The log has failed, which ended the term. The next term begins after the pause.
    case termFailed(message: String, pause: Duration)
    /// This sequencer stands by, since another one may serve. It has followed the log up to this number.
    /// Reported again when the standing changes.
    case standingBy(Standing, last: SequenceNumber)
    /// The term is over, and this sequencer stands by again.
    case steppedDown(SequencerEnd)
    /// The last term has ended. This is the last event.
    case ended(SequencerEnd)
}
