/// The members of a JSON object, in the order of their keys' UTF-8 bytes.
///
/// Keys are equal only if their bytes are: `é` written as one scalar and as two are different keys, though
/// they are equal as `String`s. A lookup takes O(log n). The members are stored in chunks of at most 256. So
/// inserting into a large object moves only a chunk, and changing a copy copies only a chunk and the list of
/// chunks.
public struct JSONObject: Sendable {
    /// A key and its value.
    public struct Member: Sendable {
        /// The key.
        public let key: String
        /// The value.
        public internal(set) var value: JSONValue

        /// Makes a member.
        ///
        /// - Parameters:
        ///   - key: The key.
        ///   - value: The value.
        public init(key: String, value: JSONValue) {
            self.key = key
            self.value = value
        }
    }

    static let chunkMax = 256

    /// *Invariant*: no chunk is empty or longer than `chunkMax`; the keys are strictly ascending throughout.
    private var chunks: [[Member]] = []
    /// How many members there are.
    public private(set) var count = 0

    /// Makes an object without members.
    public init() {}

    /// Makes an object of members whose keys are strictly ascending.
    package init(sorted members: [Member]) {
        count = members.count
        guard count > Self.chunkMax else {
            if count > 0 { chunks = [members] }
            return
        }
        // Half full, so that the first insertions split no chunk.
        chunks = stride(from: 0, to: count, by: Self.chunkMax / 2).map { start in
            Array(members[start..<Swift.min(start + Self.chunkMax / 2, count)])
        }
    }

    /// Whether there are no members.
    public var isEmpty: Bool { count == 0 }

    /// The value of a key; nil if there is no such member. Setting nil removes the member.
    ///
    /// - Parameter key: The key.
    public subscript(key: String) -> JSONValue? {
        get {
            guard case .found(let chunk, let place) = find(key) else { return nil }
            return chunks[chunk][place].value
        }
        set {
            if let newValue {
                update(key) { value, _ in value = newValue }
            } else {
                _ = remove(key)
            }
        }
    }

    /// Whether there is a member with a key.
    ///
    /// - Parameter key: The key.
    /// - Returns: True if there is.
    public func contains(_ key: String) -> Bool {
        if case .found = find(key) { true } else { false }
    }

    /// Changes the value of a key in place.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - change: Gets the value, and whether it is new; a new value is null.
    mutating func update(_ key: String, _ change: (inout JSONValue, _ isNew: Bool) -> Void) {
        switch find(key) {
        case .found(let chunk, let place):
            change(&chunks[chunk][place].value, false)
        case .missing(let chunk, let place):
            var value = JSONValue.null
            change(&value, true)
            insert(Member(key: key, value: value), chunk, place)
        }
    }

    /// Removes a member.
    ///
    /// - Parameter key: Its key.
    /// - Returns: Its value; nil if there was none.
    @discardableResult
    public mutating func remove(_ key: String) -> JSONValue? {
        guard case .found(let chunk, let place) = find(key) else { return nil }
        let removed = chunks[chunk].remove(at: place)
        if chunks[chunk].isEmpty { chunks.remove(at: chunk) }
        count -= 1
        return removed.value
    }

    private mutating func insert(_ member: Member, _ chunk: Int, _ place: Int) {
        count += 1
        guard chunk < chunks.count else {
            chunks.append([member])
            return
        }
        chunks[chunk].insert(member, at: place)
        guard chunks[chunk].count > Self.chunkMax else { return }
        // If keys are inserted in ascending order, the chunks stay full.
        let atEnd = chunk == chunks.count - 1 && place == chunks[chunk].count - 1
        let keep = atEnd ? Self.chunkMax : chunks[chunk].count / 2
        let rest = Array(chunks[chunk][keep...])
        chunks[chunk].removeLast(rest.count)
        chunks.insert(rest, at: chunk + 1)
    }

    private enum Place {
        case found(chunk: Int, place: Int)
        /// Where the key belongs. The chunk is `chunks.count` only if there are no chunks.
        case missing(chunk: Int, place: Int)
    }

    private func find(_ key: String) -> Place {
        // Finds the last chunk whose first key isn't above the key.
        let next = chunks.partitioningIndex { UTF8Order.compare($0[0].key, key) > 0 }
        let chunk = Swift.max(next - 1, 0)
        guard chunk < chunks.count else { return .missing(chunk: 0, place: 0) }
        let members = chunks[chunk]
        let place = members.partitioningIndex { UTF8Order.compare($0.key, key) >= 0 }
        return place < members.count && UTF8Order.compare(members[place].key, key) == 0
            ? .found(chunk: chunk, place: place) : .missing(chunk: chunk, place: place)
    }
}

extension JSONObject: Sequence {
    /// Iterates over the members in the order of their keys.
    public struct Iterator: IteratorProtocol {
        private let chunks: [[Member]]
        private var chunk = 0
        private var place = 0

        fileprivate init(_ chunks: [[Member]]) {
            self.chunks = chunks
        }

        /// The next member.
        ///
        /// - Returns: The member; nil after the last one.
        public mutating func next() -> Member? {
            guard chunk < chunks.count else { return nil }
            let member = chunks[chunk][place]
            place += 1
            if place == chunks[chunk].count { (chunk, place) = (chunk + 1, 0) }
            return member
        }
    }

    /// The members in the order of their keys.
    ///
    /// - Returns: An iterator at the first one.
    public func makeIterator() -> Iterator { Iterator(chunks) }

    /// The number of members.
    public var underestimatedCount: Int { count }
}

extension JSONObject: Hashable {
    /// Whether the members are the same, byte for byte.
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        left.count == right.count
            && zip(left, right).allSatisfy { left, right in
                UTF8Order.compare(left.key, right.key) == 0 && left.value == right.value
            }
    }

    /// Hashes the members' bytes.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(count)
        for member in self {
            UTF8Order.hash(member.key, into: &hasher)
            hasher.combine(member.value)
        }
    }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    /// Makes an object from a literal; of equal keys the last one counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        for (key, value) in elements { self[key] = value }
    }
}

/// Compares texts by their UTF-8 bytes, without Unicode normalisation.
enum UTF8Order {
    /// Below 0 if the left text sorts first, 0 if the bytes are the same.
    static func compare(_ left: String, _ right: String) -> Int {
        let quick = left.utf8.withContiguousStorageIfAvailable { left in
            right.utf8.withContiguousStorageIfAvailable { right in
                let common = min(left.count, right.count)
                var index = 0
                while index < common {
                    if left[index] != right[index] {
                        return Int(left[index]) - Int(right[index])
                    }
                    index += 1
                }
                return left.count - right.count
            }
        }
        if case .some(.some(let order)) = quick { return order }
        // Only strings bridged from Objective-C reach this.
        if left.utf8.elementsEqual(right.utf8) { return 0 }
        return left.utf8.lexicographicallyPrecedes(right.utf8) ? -1 : 1
    }

    static func hash(_ text: String, into hasher: inout Hasher) {
        hasher.combine(text.utf8.count)
        for byte in text.utf8 { hasher.combine(byte) }
    }
}
