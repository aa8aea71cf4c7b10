import ConfluxVocabulary

/// Entries of the log that can't be read.
public struct Damage: Sendable, Hashable {
    /// The number of the first of them.
    public var first: SequenceNumber
    /// The number of the last of them. Entries behind it may be readable.
    public var last: SequenceNumber
    /// What was found there, and what to do, for people.
    public var message: String

    /// Makes a description of entries that can't be read.
    public init(first: SequenceNumber, last: SequenceNumber, message: String) {
        self.first = first
        self.last = last
        self.message = message
    }
}
