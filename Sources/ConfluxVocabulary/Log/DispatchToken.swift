/// Names a dispatched action, so that any process can ask later what became of it.
///
/// Its text is short enough for a log line or a column of a database: `3:7-17@512-00000000000000010000000000000002`. It
/// is encoded as that text. This form is stable.
public struct DispatchToken: Hashable, Codable, Sendable, LosslessStringConvertible {
    /// The log that the action was sent to.
    public let log: LogID
    /// Who dispatched it, and which of that node's actions it is.
    public let origin: Origin
    /// An entry that was in the log before the action, and the epoch of the entry's commit. *Use*: whoever reads the log
    /// from there on finds the action, and notices if the log has lost its end since.
    public let since: StoreVersion

    /// Makes a token.
    ///
    /// - Parameters:
    ///   - log: The log that the action was sent to.
    ///   - origin: Who dispatched it, and which of that node's actions it is.
    ///   - since: An entry before the action, and the epoch of its commit.
    public init(log: LogID, origin: Origin, since: StoreVersion) {
        (self.log, self.origin, self.since) = (log, origin, since)
    }

    /// Reads a token.
    ///
    /// - Parameter description: The text that a token is printed as; nil for anything else.
    public init?(_ description: String) {
        let parts = description.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, let origin = Origin(String(parts[0])),
            let since = StoreVersion(String(parts[1])), let log = LogID(String(parts[2]))
        else { return nil }
        self.init(log: log, origin: origin, since: since)
    }

    /// Reads what ``encode(to:)`` writes.
    public init(from decoder: any Decoder) throws {
        self = try decoder.text("a token of a dispatch", Self.init)
    }

    /// Writes the text that a token is printed as.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    /// The token of the action that is `distance` places later in the same batch.
    package func advanced(by distance: Int) -> DispatchToken {
        DispatchToken(
            log: log,
            origin: Origin(
                incarnation: origin.incarnation, counter: origin.counter + UInt64(distance)),
            since: since)
    }

    /// The origin, the entry before, and the log.
    public var description: String { "\(origin)-\(since)-\(log)" }
}
