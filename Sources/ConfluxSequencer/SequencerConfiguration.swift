import ConfluxLog
import ConfluxProtocol

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
    }

    /// Where nodes connect: `tcp://host:port`; port 0 for a free one.
    public var bind: String
    /// Where the feed is; nil for the port above that of `bind`, or for a free one with port 0.
    public var feed: String?
    /// Where the log is kept.
    public var storage: Storage
    /// The most bytes of one payload.
    public var payloadBytesMax: UInt32 = 1 << 20
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
    /// The tenure has begun: nodes are heard.
    case serving(log: LogID, epoch: Epoch, last: SequenceNumber)
    /// What the machine noted.
    case note(SequencerNote)
    /// The tenure has ended. The last event.
    case ended(SequencerEnd)
}
