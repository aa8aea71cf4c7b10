import Conflux

/// The entries that had no effect here, for those who ask about an entry. Bounded: *at the bound*
/// the oldest is forgotten, and of entries up to it nothing is known any more.
struct RefusalMemory {
    private var messages: [SequenceNumber: String] = [:]
    private var order: [SequenceNumber] = []
    private var head = 0
    private let countMax: Int
    /// Of entries up to this number the effect is not known.
    private(set) var unknownThrough = SequenceNumber.zero

    init(countMax: Int) {
        self.countMax = countMax
    }

    mutating func insert(_ sequence: SequenceNumber, _ message: String) {
        guard messages.updateValue(message, forKey: sequence) == nil else { return }
        order.append(sequence)
        guard messages.count > countMax else { return }
        messages[order[head]] = nil
        unknownThrough = max(unknownThrough, order[head])
        head += 1
        if head * 2 > order.count {
            order.removeFirst(head)
            head = 0
        }
    }

    /// Entries up to this number did not come one by one.
    mutating func passOver(through sequence: SequenceNumber) {
        unknownThrough = max(unknownThrough, sequence)
    }

    func message(of sequence: SequenceNumber) -> String? { messages[sequence] }
}
