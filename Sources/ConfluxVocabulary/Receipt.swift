/// Proof of commitment. As a token, it lets any other node wait until it has applied the action.
///
/// It is encoded as an object of its properties, without `log` if there is none, in JSON:
/// `{"epoch":7,"log":"00000000000000010000000000000002","sequence":42,"timestamp":1700000000000000001}`.
/// The encoding does not change.
public struct Receipt: Hashable, Codable, Sendable {
    /// The log that holds the action; nil for an action that a store applied without a node.
    public let log: LogID?
    /// The term in which the action was committed; ``Epoch/none`` without a node.
    public let epoch: Epoch
    /// The action's place in the log; without a node, the store's own count of its actions.
    public let sequence: SequenceNumber
    /// When the sequencer ordered the action; without a node, when the store applied it.
    public let timestamp: Timestamp

    private enum CodingKeys: String, CodingKey {
        case log, epoch, sequence, timestamp
    }

    /// Makes a receipt, for example for a test.
    ///
    /// - Parameters:
    ///   - log: The log that holds the action; nil without a node.
    ///   - epoch: The term of the commit; ``Epoch/none`` without a node.
    ///   - sequence: The action's place.
    ///   - timestamp: When it was ordered.
    public init(log: LogID?, epoch: Epoch, sequence: SequenceNumber, timestamp: Timestamp) {
        self.log = log
        self.epoch = epoch
        self.sequence = sequence
        self.timestamp = timestamp
    }
}
