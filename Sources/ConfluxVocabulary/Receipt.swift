/// Proof of commitment. As a token, it lets any other node wait until it has applied the action.
public struct Receipt: Hashable, Sendable {
    /// The log that holds the action; nil for an action that a store applied without a node.
    public let log: LogID?
    /// The tenure in which the action was committed; ``Epoch/none`` without a node.
    public let epoch: Epoch
    /// The action's place in the log; without a node, the store's own count of its actions.
    public let sequence: SequenceNumber
    /// When the sequencer ordered the action; without a node, when the store applied it.
    public let timestamp: Timestamp

    /// Makes a receipt, as for a test.
    ///
    /// - Parameters:
    ///   - log: The log that holds the action; nil without a node.
    ///   - epoch: The tenure of the commit; ``Epoch/none`` without a node.
    ///   - sequence: The action's place.
    ///   - timestamp: When it was ordered.
    public init(log: LogID?, epoch: Epoch, sequence: SequenceNumber, timestamp: Timestamp) {
        self.log = log
        self.epoch = epoch
        self.sequence = sequence
        self.timestamp = timestamp
    }
}
