import ConfluxVocabulary

/// Commits that wait, with or without holes between them. The owner bounds their bytes.
struct CommitBuffer: Sendable {
    /// A commit and its size.
    struct Item: Sendable {
        var commit: Commit
        var byteCount: Int
    }

    /// Ascending by first number, without duplicates, from `head` on.
    private var items: [Item?] = []
    /// The items before this index are gone. They are removed once they outnumber the others, so
    /// that taking one item does not move all the others.
    private var head = 0
    private(set) var byteCount = 0

    var isEmpty: Bool { head == items.count }

    private func first(at index: Int) -> SequenceNumber {
        items[index]?.commit.first ?? .zero
    }

    /// Inserts a commit in its place, unless it is here already.
    mutating func insert(_ commit: Commit, byteCount size: Int) {
        var index = items.count
        while index > head, first(at: index - 1) > commit.first { index -= 1 }
        if index > head, first(at: index - 1) == commit.first { return }
        items.insert(Item(commit: commit, byteCount: size), at: index)
        byteCount += size
    }

    /// Takes the commit that follows a number, and drops all commits that are not above it.
    mutating func take(after number: SequenceNumber) -> Item? {
        let isStale = { (item: Item?) in item.map { $0.commit.last <= number } ?? true }
        dropFirst(items[head...].prefix(while: isStale).count)
        guard head < items.count, let first = items[head], first.commit.first <= number.next
        else { return nil }
        dropFirst(1)
        return first
    }

    /// The last number in the buffer.
    var last: SequenceNumber? { isEmpty ? nil : items.last??.commit.last }

    /// The commit that follows a number. It stays in the buffer.
    func item(after number: SequenceNumber) -> Item? {
        let later = (head..<items.count).partitioningIndex { first(at: $0) > number.next }
        guard later > head, let item = items[later - 1], item.commit.last > number else {
            return nil
        }
        return item
    }

    func checkInvariants() throws(BrokenInvariant) {
        let kept = items[head...].compactMap { $0 }
        try hold(kept.count == items.count - head, "a commit is missing")
        for (former, item) in zip(kept, kept.dropFirst()) {
            try hold(
                former.commit.first < item.commit.first, "\(item.commit.first) is out of order")
        }
        let bytes = kept.reduce(0) { $0 + $1.byteCount }
        try hold(bytes == byteCount, "\(bytes) bytes, and \(byteCount) are counted")
    }

    /// Drops the oldest commits until no more than this many bytes are kept.
    mutating func shrink(to bytesMax: Int) {
        var count = 0
        var bytes = byteCount
        while bytes > bytesMax, head + count < items.count {
            bytes -= items[head + count]?.byteCount ?? 0
            count += 1
        }
        dropFirst(count)
    }

    mutating func removeAll() {
        items.removeAll()
        head = 0
        byteCount = 0
    }

    private mutating func dropFirst(_ count: Int) {
        guard count > 0 else { return }
        for index in head..<head + count {
            byteCount -= items[index]?.byteCount ?? 0
            items[index] = nil
        }
        head += count
        if head * 2 > items.count {
            items.removeFirst(head)
            head = 0
        }
    }
}
