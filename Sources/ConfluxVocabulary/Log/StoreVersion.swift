/// The version of a store: the number of the last entry that its state depends on.
///
/// A dispatch can be made conditional on it: the sequencer takes the action only if no later entry concerns the store. A
/// version has an epoch, too: a log that lost its end gives the same numbers to other entries, and so a version from
/// before the loss is not mistaken for a present one.
///
/// Its text is `17@512`, or `17` without an epoch. Versions of different logs do not compare.
public struct StoreVersion: Hashable, Codable, Sendable, LosslessStringConvertible {
    /// The number of an entry. The state depends on no entry behind it.
    public let sequence: SequenceNumber
    /// A term in which the log had this entry; ``Epoch/none`` if that is not known. Then nothing tells whether the log
    /// has lost the entry.
    public let epoch: Epoch

    /// Makes a version.
    ///
    /// - Parameters:
    ///   - sequence: The number of an entry.
    ///   - epoch: A term in which the log had this entry; ``Epoch/none`` if that is not known.
    public init(sequence: SequenceNumber, epoch: Epoch = .none) {
        (self.sequence, self.epoch) = (sequence, epoch)
    }

    /// Reads a version: `17@512`, or `17`.
    ///
    /// - Parameter description: The text.
    public init?(_ description: String) {
        let parts = description.split(separator: "@", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { part -> UInt64? in
            guard part.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            return Int64(part).map(UInt64.init)
        }
        guard numbers.count == parts.count, (1...2).contains(parts.count) else { return nil }
        self.init(
            sequence: SequenceNumber(numbers[0]),
            epoch: numbers.count > 1 ? Epoch(numbers[1]) : .none)
    }

    /// The number and the epoch.
    public var description: String { epoch == .none ? "\(sequence)" : "\(sequence)@\(epoch)" }
}
