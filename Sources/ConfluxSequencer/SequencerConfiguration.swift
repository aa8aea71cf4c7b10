import ConfluxLog
import ConfluxProtocol
@_exported import struct ConfluxZeroMQ.CurveKeyPair
@_exported import struct ConfluxZeroMQ.CurvePublicKey
@_exported import enum ConfluxZeroMQ.KeyFile
@_exported import struct ConfluxZeroMQ.KeyFileError
import enum ConfluxZeroMQ.SocketSecurity

/// The settings with which a sequencer starts.
public struct SequencerConfiguration: Sendable {
    /// Where the log is kept.
    public enum Storage: Sendable {
        /// In a folder, by SQLite.
        ///
        /// - Parameters:
        ///   - path: The folder; it is created if it does not exist.
        ///   - settings: Bounds, and the durability of appends.
        case folder(String, SQLiteLogSettings)
        /// In memory: a new log each time, for tests and for state that may be lost.
        case memory
        /// In another engine, such as `EtcdLog`. If another program claims the log, the sequencer ends with
        /// `superseded`.
        ///
        /// - Parameter open: Opens the log when the sequencer starts, and again, on another thread, each time that
        ///   the log has failed.
        case opened(by: @Sendable () throws(LogError) -> any ActionLog)
        /// In an engine that several sequencers may open, such as `EtcdLog`: one serves, and the others stand by. This
        /// sequencer serves while it has the tenure, and stands by while another one has it.
        ///
        /// - Parameter open: Opens the log when the sequencer starts, and again, on another thread, each time that
        ///   the log has failed.
        case shared(by: @Sendable () throws(LogError) -> any SharedActionLog)

        var isShared: Bool { if case .shared = self { true } else { false } }
        var isMemory: Bool { if case .memory = self { true } else { false } }
    }

    /// Who may connect.
    public enum Access: Sendable {
        /// Every process on this machine. The sequencer starts only if its addresses are on the loopback interface,
        /// or are local sockets. Nothing is encrypted.
        case local
        /// Everybody who reaches the addresses. They may read, dispatch and drop everything. Whoever controls the
        /// network between may read and change all messages.
        case insecure
        /// Holders of authorised keys only. Connections are encrypted, and clients check that the sequencer has the
        /// secret half of its pair. See ``Sequencer/authorize(_:)``.
        ///
        /// - Parameters:
        ///   - own: The sequencer's pair.
        ///   - authorized: Who may connect.
        ///   - reading: Reads the authorised keys again, when ``Sequencer/reload()`` or a client asks for it. Called
        ///     on a thread of its own, one call at a time.
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
    /// The address at which nodes reach this sequencer, `tcp://host:port`: sequencers that share the log send nodes
    /// there. Unless given, it is the bound address, which then must not be a wildcard.
    public var advertise: String?
    /// The address of the feed; nil for the port above that of `bind`, or for a free port if that is 0.
    public var feed: String?
    /// Where the log is kept.
    public var storage: Storage
    /// The most bytes of one payload.
    public var payloadBytesMax: UInt32 = 1 << 20
    /// How many bytes of commits follow a checkpoint before the next one is made, at least 1. A start reads about as
    /// much of the log. If a checkpoint is larger than this, the next one is due after as many bytes as it has. A
    /// thread of its own makes checkpoints. Meanwhile it needs as much memory as the sequencer's tables have.
    public var checkpointBytes = 64 << 20
    /// How much of the log is kept beyond what somebody may need (rule 20). Above one of these bounds, the sequencer
    /// discards every entry that no replica and no start can need. A start needs the entries behind the older of the
    /// last two checkpoints. So nothing is discarded before there are two checkpoints, that is, twice
    /// ``checkpointBytes`` of log.
    public var retention = Retention()
    /// The longest pause between two attempts to begin a new tenure after the log failed, for example because the disk
    /// is full. Pauses double from 100 ms up to this. Each attempt opens the log anew and reads its end; nodes then
    /// submit actions without an outcome again. With nil the sequencer ends instead. It always ends when another one
    /// has taken over, when the log is damaged, and when the log fails before the first tenure began.
    public var renewalPauseMax: Duration? = .seconds(5)
    /// Changes the protocol's bounds, after all other settings.
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
        /// An address is not valid.
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

/// What happens in a sequencer.
public enum SequencerEvent: Sendable {
    /// What a standby knows.
    public struct Standing: Sendable, Hashable {
        /// The address of the serving sequencer; nil if none is known.
        public var server: String?
        /// Why the log can't be followed; nil if it can.
        public var failure: String?

        /// Makes a standing.
        public init(server: String?, failure: String?) {
            self.server = server
            self.failure = failure
        }
    }

    /// A tenure has begun: the sequencer answers nodes.
    case serving(log: LogID, epoch: Epoch, last: SequenceNumber)
    /// A note of the protocol's machine.
    case note(SequencerNote)
    /// Further notes of a kind that peers alone can cause were omitted in the last span:
    /// `unreadable`, `challenged`, `historyLost`, `joined` or `left`.
    case omitted(String, count: Int, span: Duration)
    /// A checkpoint with this number was saved, of so many bytes.
    case checkpointSaved(SequenceNumber, bytes: Int)
    /// A checkpoint could not be made or saved. The log is intact without it, but the next start takes longer.
    case checkpointFailed(message: String)
    /// The file of authorised keys was read again; it has this many keys.
    case authorized(count: Int)
    /// The file of authorised keys could not be read again. The former keys still count.
    case authorizationFailed(message: String)
    /// The log has failed, and with it the tenure; after the pause the next one begins.
    case tenureFailed(message: String, pause: Duration)
    /// This sequencer stands by, and has followed the log up to this number. Reported again when the standing changes.
    case standingBy(Standing, last: SequenceNumber)
    /// The tenure is over, and this sequencer stands by again.
    case steppedDown(SequencerEnd)
    /// The last tenure has ended. The last event.
    case ended(SequencerEnd)
}
