import Conflux

/// The effects of actions of this node that entries told, until their outcomes are.
struct OwnEffects {
    private var known = RangeSet<UInt64>()
    /// The log was passed over up to here.
    var passedOver = SequenceNumber.zero

    mutating func insert(_ ranges: [ClosedRange<SequenceNumber>]) {
        for range in ranges {
            known.insert(
                contentsOf: range.lowerBound.rawValue..<range.upperBound.rawValue + 1)
        }
    }

    func contains(_ sequence: SequenceNumber) -> Bool { known.contains(sequence.rawValue) }

    mutating func removeAll() { known = RangeSet() }
}
