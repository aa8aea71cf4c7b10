import ConfluxLog
import ConfluxProtocol
@_exported import struct ConfluxZeroMQ.CurveKeyPair
@_exported import struct ConfluxZeroMQ.CurvePublicKey
@_exported import enum ConfluxZeroMQ.KeyFile
@_exported import struct ConfluxZeroMQ.KeyFileError
import enum ConfluxZeroMQ.SocketSecurity

/// What a sequencer is started with.
public struct SequencerConfiguration: Sendable {
    /// Where the log is kept.
    public enum Storage: Sendable {
        /// In a folder, by SQLite.
        ///
        /// - Parameters:
        ///   - path: The folder; it is made if there is none.
        ///   - settings: How it is kept, above all how durable.
        case folder(String, SQLiteLogSettings)
        /// In memory: a new log each time, for tests and for state that may be lost.
        case memory
        /// By an engine of its own, such as `EtcdLog`. Another program may claim the log there; then the
        /// sequencer ends, as `superseded`.
        ///
        /// - Parameter open: Opens the log: when the sequencer starts, and again, on another thread, each time that
        ///   the log failed.
        case opened(by: @Sendable () throws(LogError) -> any ActionLog)
        /// By an engine that several sequencers may open, such as `EtcdLog`: one serves, and the others stand by. This
        /// one serves once it has the tenure, and stands by whenever another one has it.
        ///
        /// - Parameter open: Opens the log: when the sequencer starts, and again, on another thread, each time that
        ///   the log failed.
        case shared(by: @Sendable () throws(LogError) -> any SharedActionLog)

        var isShared: Bool { if case .shared = self { true } else { false } }
        var isMemory: Bool { if case .memory = self { true } else { false } }
    }

    /// Who may connect.
    public enum Access: Sendable {
        /// Whoever is on this machine: the sequencer starts only where its addresses are on the loopback
        /// interface, or no network's at all. Nothing is encrypted.
        case local
        /// Whoever reaches the addresses, wherever they are: they may read, dispatch and drop what
        /// they like, and whoever is on the way may read and change what passes.
        case insecure
        /// Only who has one of these keys. Connections are encrypted, and nobody can answer in the
        /// sequencer's place who has not the secret half of its pair. See ``Sequencer/authorize(_:)``.
        ///
        /// - Parameters:
        ///   - own: The sequencer's pair.
        ///   - authorized: Who may connect.
        ///   - reading: Reads anew who may connect, when ``Sequencer/reload()`` or a client asks for
        ///     it: on a thread of its own, one time after another.
        case keys(
            _ own: CurveKeyPair, authorized: AuthorizedKeys,
            reading: (@Sendable () -> Result<AuthorizedKeys, AuthorizedKeysError>)? = nil)

        var security: SocketSecurity {
            if case .keys(let own, _, _) = self { .server(own) } else { .none }
        }
    }

    /// Where nodes connect: `tcp://host:port`; port 0 for a free one.
    public var bind: String
    /// Who may connect.
    public var access: Access = .local
    /// Where nodes reach this sequencer, as others tell them that share the log: `tcp://host:port`. Unless given, where
    /// it is bound, which must then be no wildcard.
    public var advertise: String?
    /// Where the feed is; nil for the port above that of `bind`, or for a free one with port 0.
    public var feed: String?
    /// Where the log is kept.
    public var storage: Storage
    /// The most bytes of one payload.
    public var payloadBytesMax: UInt32 = 1 << 20
    /// How many bytes of commits stand behind the newest checkpoint before the next one is made, at
    /// least 1. A start reads about as much of the log. When a checkpoint is larger than this, the
    /// next one is due after as many bytes as it has. Checkpoints are made on a thread of their own,
    /// which needs memory for what the sequencer remembers, once more, while it makes one.
    public var checkpointBytes = 64 << 20
    /// How much of the log is kept beyond what somebody may need (rule 20): of what is above one of its
    /// bounds, everything is given up that no replica, and no start, can need. A start needs what stands
    /// behind the older of the last two checkpoints, so that it takes two of those, and thus twice
    /// ``checkpointBytes`` of log, before anything is given up.
    public var retention = Retention()
    /// What happens when the log fails, as by an error of the disk or a full one: a new tenure begins,
    /// for as often as it takes, after pauses that double from 100 ms up to this. The log is opened
    /// anew, its end is read, and nodes submit again what has no outcome. nil: the sequencer ends, as
    /// it does in any case when another one has taken over, when the log is damaged, and when it
    /// fails before nodes were heard for the first time.
    public var renewalPauseMax: Duration? = .seconds(5)
    /// Changes the protocol's bounds, after everything else was set.
    public var adjust: @Sendable (inout SequencerSettings) -> Void = { _ in }

    /// Makes a configuration.
    ///
    /// - Parameters:
    ///   - bind: Where nodes connect.
    ///   - storage: Where the log is kept.
    public init(bind: String, storage: Storage) {
        self.bind = bind
        self.storage = storage
    }
}

/// Why a sequencer could not start.
public struct SequencerError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it is: stable, and fit for a program to decide by.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        /// An address is none.
        case invalidAddress
        /// An address can be reached from elsewhere, and everybody might connect.
        case insecure
        /// Another process listens at the address.
        case addressInUse
        /// The folder can't be used, or another sequencer uses it.
        case logUnavailable
        /// A setting is out of its bounds.
        case invalidSetting
        /// The system refused something else.
        case failed
    }

    /// What kind of failure it is.
    public let code: Code
    /// What happened and what to do.
    public let message: String

    /// The code and the message.
    public var description: String { "\(code.rawValue): \(message)" }
}

/// What a sequencer tells whoever watches it.
public enum SequencerEvent: Sendable {
    /// What one that stands by knows.
    public struct Standing: Sendable, Hashable {
        /// The address of the one that serves; nil where none is known to.
        public var server: String?
        /// Why the log can't be followed; nil where it can.
        public var failure: String?

        /// Makes a standing.
        public init(server: String?, failure: String?) {
            self.server = server
            self.failure = failure
        }
    }

    /// A tenure has begun: nodes are heard.
    case serving(log: LogID, epoch: Epoch, last: SequenceNumber)
    /// What the machine noted.
    case note(SequencerNote)
    /// So many more notes of a kind that peers alone can cause were not told in the last span:
    /// `unreadable`, `challenged`, `historyLost`, `joined` or `left`.
    case omitted(String, count: Int, span: Duration)
    /// A checkpoint with this number was saved, of so many bytes.
    case checkpointSaved(SequenceNumber, bytes: Int)
    /// A checkpoint could not be made or saved. The log is whole without it; starting takes longer.
    case checkpointFailed(message: String)
    /// The file of authorised keys was read again: so many may connect.
    case authorized(count: Int)
    /// The file of authorised keys could not be read again: the former keys stay.
    case authorizationFailed(message: String)
    /// The log has failed, and with it the tenure; after the pause the next one begins.
    case tenureFailed(message: String, pause: Duration)
    /// Another sequencer may serve; this one follows the log up to that number. Told again when the standing changes.
    case standingBy(Standing, last: SequenceNumber)
    /// The tenure is over, and this sequencer stands by again.
    case steppedDown(SequencerEnd)
    /// The last tenure has ended. The last event.
    case ended(SequencerEnd)
}
