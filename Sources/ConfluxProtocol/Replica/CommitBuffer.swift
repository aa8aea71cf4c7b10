import ConfluxVocabulary

/// Consecutive or scattered commits that wait, within a bound of bytes.
struct CommitBuffer: Sendable {
    /// A commit and its size.
    struct Item: Sendable {
        var commit: Commit
        var byteCount: Int
    }

    /// Ascending by first number, without doubles.
    private(set) var items: [Item] = []
    private(set) var byteCount = 0

    var isEmpty: Bool { items.isEmpty }

    /// Puts a commit where it belongs; one that is here already is not kept twice.
    mutating func insert(_ commit: Commit, byteCount size: Int) {
        var index = items.count
        while index > 0, items[index - 1].commit.first > commit.first { index -= 1 }
        if index > 0, items[index - 1].commit.first == commit.first { return }
        items.insert(Item(commit: commit, byteCount: size), at: index)
        byteCount += size
    }

    /// Takes the commit that follows this number, and drops what is not above it.
    mutating func take(after number: SequenceNumber) -> Item? {
        let stale = items.prefix { $0.commit.last <= number }.count
        dropFirst(stale)
        guard let first = items.first, first.commit.first <= number.next else { return nil }
        dropFirst(1)
        return first
    }

    /// Drops the oldest until no more than this many bytes are kept.
    mutating func shrink(to bytesMax: Int) {
        var count = 0
        var bytes = byteCount
        while bytes > bytesMax, count < items.count {
            bytes -= items[count].byteCount
            count += 1
        }
        dropFirst(count)
    }

    mutating func removeAll() {
        items.removeAll()
        byteCount = 0
    }

    private mutating func dropFirst(_ count: Int) {
        guard count > 0 else { return }
        for item in items.prefix(count) { byteCount -= item.byteCount }
        items.removeFirst(count)
    }
}
