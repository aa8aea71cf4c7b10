import ConfluxVocabulary

/// A tree of values as one flat run of nodes, between `Codable` and the codings.
///
/// Encoding fills a tape and then writes it as JSON or compact bytes. Decoding reads the bytes onto a tape,
/// checks all of them, and then lets a type read values by key. So each coding is one reader and one writer,
/// and there is only one bridge to `Codable`. Nothing is allocated per value: the two buffers are kept for
/// the next use.
// @unchecked Sendable: only one thread uses a tape at a time, the one that took it from the pool under its
// lock.
final class Tape: @unchecked Sendable {
    /// The kind of a node.
    enum Kind: UInt8 {
        /// Nothing was encoded yet.
        case unset
        case null, no, yes
        /// An integer of 0 or more: `payload` is its value.
        case natural
        /// An integer below 0: `payload` is its 64-bit two's complement.
        case negative
        /// `payload` holds the bits.
        case double, float
        /// `payload` is where its bytes begin in `text`, and `count` is their number.
        case string, bytes
        /// `count` children, linked from `first` by `next`.
        case array, object
    }

    /// One value. It has 32 bytes, and is trivial to copy.
    struct Node {
        var kind = Kind.unset
        /// *Use*: strict decoding. *Invariant*: true once the value was read.
        var isUsed = false
        /// *Use*: strict decoding. *Invariant*: true once members were read by key.
        var isOpened = false
        /// *Use*: filling in defaults. *Invariant*: true if what is inside depends on the value: the elements of a
        /// collection, or the values of an enumeration's case. Only set if ``Tape/marksVarying`` is.
        var isVarying = false
        var keyStart: UInt32 = 0
        var keyLength: UInt32 = 0
        /// The next child of the same parent; 0 after the last. (The root is nobody's child.)
        var next: UInt32 = 0
        var parent: UInt32 = 0
        var count: UInt32 = 0
        var payload: UInt64 = 0

        /// The first child; 0 for none.
        var first: UInt32 {
            get { UInt32(truncatingIfNeeded: payload) }
            set { payload = (payload & ~0xFFFF_FFFF) | UInt64(newValue) }
        }
        /// While encoding, the last child; while decoding, the child that was found last.
        var last: UInt32 {
            get { UInt32(truncatingIfNeeded: payload >> 32) }
            set { payload = (payload & 0xFFFF_FFFF) | UInt64(newValue) << 32 }
        }
    }

    // Unchecked exclusivity: no access to either buffer is open while a function is called that changes it,
    // and only one thread uses a tape.

    @exclusivity(unchecked) var nodes: ContiguousArray<Node> = []
    /// The bytes of keys, strings and byte runs.
    @exclusivity(unchecked) var text: ContiguousArray<UInt8> = []
    /// Whether sets and dictionaries are to be sorted while encoding.
    var sortsUnordered = false
    /// What stands for missing members while decoding; nil if they are an error.
    var defaults: Defaults?
    /// Whether nodes are to be marked as varying while encoding.
    var marksVarying = false
    /// The first misuse of an encoder, if it could not be thrown where it happened.
    var misuse: String?
    /// Which types are unordered collections, as far as known.
    var unorderedTypes: [ObjectIdentifier: Bool] = [:]

    /// Empties the tape and leaves one unset node, the root, at 0.
    func reset() {
        (sortsUnordered, defaults) = (false, nil)
        // Most tapes are reset twice: when they are taken from the pool, and by the reader.
        if nodes.count == 1, nodes[0].kind == .unset, text.isEmpty, misuse == nil { return }
        nodes.removeAll(keepingCapacity: true)
        text.removeAll(keepingCapacity: true)
        misuse = nil
        nodes.append(Node())
    }

    /// Whether the buffers are small enough to keep for the next use.
    var isWorthKeeping: Bool { nodes.capacity <= 4096 && text.capacity <= 1 << 16 }

    // MARK: Building

    /// Adds an unset element to an array.
    func appendElement(to parent: UInt32) -> UInt32 {
        let index = UInt32(truncatingIfNeeded: nodes.count)
        var node = Node()
        node.parent = parent
        link(&node, index, to: parent)
        return index
    }

    /// Adds an unset member to an object.
    func appendMember(to parent: UInt32, keyStart: Int, keyLength: Int) -> UInt32 {
        let index = UInt32(truncatingIfNeeded: nodes.count)
        var node = Node()
        node.parent = parent
        node.keyStart = UInt32(truncatingIfNeeded: keyStart)
        node.keyLength = UInt32(truncatingIfNeeded: keyLength)
        link(&node, index, to: parent)
        return index
    }

    /// Adds an unset member to an object, and the key to the text.
    func appendMember(to parent: UInt32, key: String) -> UInt32 {
        let start = text.count
        text.append(contentsOf: key.utf8)
        return appendMember(to: parent, keyStart: start, keyLength: text.count - start)
    }

    private func link(_ node: inout Node, _ index: UInt32, to parent: UInt32) {
        nodes.append(node)
        let parent = Int(parent)
        if nodes[parent].count == 0 {
            nodes[parent].first = index
        } else {
            nodes[Int(nodes[parent].last)].next = index
        }
        nodes[parent].last = index
        nodes[parent].count += 1
    }

    func set(_ index: UInt32, _ kind: Kind, payload: UInt64 = 0) {
        nodes[Int(index)].kind = kind
        nodes[Int(index)].payload = payload
    }

    func set(_ index: UInt32, integer: JSONInteger) {
        set(index, integer.isNegative ? .negative : .natural, payload: integer.bits)
    }

    func set(_ index: UInt32, string: String) {
        let start = text.count
        text.append(contentsOf: string.utf8)
        setText(index, .string, from: start)
    }

    /// Makes a node the string or byte run that begins at a place in `text` and goes to its end.
    func setText(_ index: UInt32, _ kind: Kind, from start: Int) {
        nodes[Int(index)].kind = kind
        nodes[Int(index)].payload = UInt64(start)
        nodes[Int(index)].count = UInt32(truncatingIfNeeded: text.count - start)
    }

    // MARK: Reading

    /// The bytes of a string or byte run.
    func content(of index: UInt32) -> ArraySlice<UInt8> {
        let node = nodes[Int(index)]
        let start = Int(node.payload)
        return ArraySlice(text[start..<start + Int(node.count)])
    }

    func string(of index: UInt32) -> String {
        let node = nodes[Int(index)]
        return string(from: Int(node.payload), count: Int(node.count))
    }

    func key(of index: UInt32) -> String {
        let node = nodes[Int(index)]
        return string(from: Int(node.keyStart), count: Int(node.keyLength))
    }

    private func string(from start: Int, count: Int) -> String {
        text.withUnsafeBufferPointer { text in
            String(checkedUTF8: UnsafeBufferPointer(rebasing: text[start..<start + count]))
        }
    }

    /// The children of an array or an object, in order.
    struct Children: Sequence, IteratorProtocol {
        fileprivate let tape: Tape
        fileprivate var following: UInt32
        let underestimatedCount: Int

        mutating func next() -> UInt32? {
            guard following != 0 else { return nil }
            defer { following = tape.nodes[Int(following)].next }
            return following
        }
    }

    func children(of index: UInt32) -> Children {
        let node = nodes[Int(index)]
        return Children(
            tape: self, following: node.count == 0 ? 0 : node.first,
            underestimatedCount: Int(node.count))
    }

    /// The member with a key. The search begins after the member that was found last, so that members read in
    /// order are found at once.
    func member(of index: UInt32, key: String) -> UInt32? {
        let object = nodes[Int(index)]
        guard object.count > 0 else { return nil }
        let previous = object.last
        var child = previous == 0 ? object.first : nodes[Int(previous)].next
        if child == 0 { child = object.first }
        var key = key
        return key.withUTF8 { key in
            text.withUnsafeBufferPointer { text in
                for _ in 0..<object.count {
                    let node = nodes[Int(child)]
                    let start = Int(node.keyStart)
                    if Int(node.keyLength) == key.count {
                        var place = 0
                        while place < key.count, key[place] == text[start + place] { place += 1 }
                        if place == key.count {
                            nodes[Int(index)].last = child
                            return child
                        }
                    }
                    child = node.next == 0 ? object.first : node.next
                }
                return nil
            }
        }
    }

    /// The keys and positions that lead to a node.
    func path(to index: UInt32) -> [any CodingKey] {
        var path: [any CodingKey] = []
        var index = index
        while index != 0 {
            let parent = nodes[Int(index)].parent
            if nodes[Int(parent)].kind == .object {
                path.append(TapeKey(stringValue: key(of: index)))
            } else {
                var position = 0
                var child = nodes[Int(parent)].first
                while child != index {
                    position += 1
                    child = nodes[Int(child)].next
                }
                path.append(TapeKey(intValue: position))
            }
            index = parent
        }
        return path.reversed()
    }

    // MARK: Order

    /// Whether the left member's key sorts before the right one's, by bytes.
    func keyPrecedes(_ left: UInt32, _ right: UInt32) -> Bool {
        let (a, b) = (nodes[Int(left)], nodes[Int(right)])
        return text.withUnsafeBufferPointer { text in
            text[Int(a.keyStart)..<Int(a.keyStart) + Int(a.keyLength)].lexicographicallyPrecedes(
                text[Int(b.keyStart)..<Int(b.keyStart) + Int(b.keyLength)])
        }
    }

    /// Whether the members' keys are strictly ascending.
    func isSorted(_ index: UInt32) -> Bool {
        var child = nodes[Int(index)].first
        guard nodes[Int(index)].count > 1 else { return true }
        while case let next = nodes[Int(child)].next, next != 0 {
            guard keyPrecedes(child, next) else { return false }
            child = next
        }
        return true
    }

    /// Puts an object's members in the order of their keys; of equal keys only the last one stays.
    func sortMembers(of index: UInt32) {
        if isSorted(index) { return }
        var sorted: [UInt32] = []
        sorted.reserveCapacity(Int(nodes[Int(index)].count))
        for child in sortedChildren(of: index) {
            if let last = sorted.last, !keyPrecedes(last, child) { sorted.removeLast() }
            sorted.append(child)
        }
        relink(index, sorted)
    }

    /// An object's members in the order of their keys; members with equal keys keep their order.
    ///
    /// Most comparisons only compare the keys' first bytes, as numbers that are stored together. The keys
    /// themselves are scattered over memory in a large object.
    private func sortedChildren(of index: UInt32) -> [UInt32] {
        let entries = children(of: index).map { (prefix: keyPrefix(of: $0), node: $0) }
        return entries.sorted { left, right in
            left.prefix == right.prefix
                ? keyPrecedes(left.node, right.node) : left.prefix < right.prefix
        }.map(\.node)
    }

    /// The first eight bytes of a member's key as a big-endian number, padded with zeros. If two such numbers
    /// differ, the keys have the same order.
    private func keyPrefix(of index: UInt32) -> UInt64 {
        let node = nodes[Int(index)]
        let (start, count) = (Int(node.keyStart), min(8, Int(node.keyLength)))
        return text.withUnsafeBufferPointer { text in
            var prefix: UInt64 = 0
            for place in 0..<count { prefix = prefix << 8 | UInt64(text[start + place]) }
            return count == 0 ? 0 : prefix << UInt64(8 * (8 - count))
        }
    }

    /// A key that an object has twice, if there is one.
    func duplicateKey(in index: UInt32) -> UInt32? {
        guard !isSorted(index) else { return nil }
        let sorted = sortedChildren(of: index)
        return zip(sorted, sorted.dropFirst()).first { !keyPrecedes($0, $1) }?.1
    }

    /// Links the children of a node in a new order.
    func relink(_ index: UInt32, _ children: [UInt32]) {
        nodes[Int(index)].count = UInt32(truncatingIfNeeded: children.count)
        nodes[Int(index)].first = children.first ?? 0
        nodes[Int(index)].last = children.last ?? 0
        for (place, child) in children.enumerated() {
            nodes[Int(child)].next = place + 1 < children.count ? children[place + 1] : 0
        }
    }
}

/// The key or position of a value on a tape.
struct TapeKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init(intValue: Int) {
        stringValue = String(intValue)
        self.intValue = intValue
    }
}
