/// Writes a tape in the compact coding.
struct CompactWriter {
    private(set) var bytes: [UInt8] = []
    private let tape: Tape
    /// For each numbered key, a member that has it.
    private var keys: [UInt32] = []

    /// Writes the whole tape.
    static func write(_ tape: Tape) throws(CodingFailure) -> [UInt8] {
        var writer = CompactWriter(tape: tape)
        writer.bytes.reserveCapacity(tape.text.count + 2 * tape.nodes.count + 8)
        writer.bytes.append(CompactFormat.format)
        try writer.write(0, depth: 0)
        return writer.bytes
    }

    private init(tape: Tape) {
        self.tape = tape
    }

    private mutating func write(_ index: UInt32, depth: Int) throws(CodingFailure) {
        let node = tape.nodes[Int(index)]
        switch node.kind {
        case .null: head(.simple, 0)
        case .no: head(.simple, 1)
        case .yes: head(.simple, 2)
        case .natural: head(.natural, node.payload)
        case .negative: head(.negative, ~node.payload)
        case .double:
            let value = Double(bitPattern: node.payload)
            guard value.isFinite else { throw .notFinite("\(value)") }
            head(.double, 0)
            fixed(node.payload, 8)
        case .float:
            guard node.floatValue.isFinite else { throw .notFinite("\(node.floatValue)") }
            head(.float, 0)
            fixed(node.payload, 4)
        case .string: text(.string, node)
        case .bytes: text(.bytes, node)
        case .array:
            try CodingLimits.checkNesting(at: depth)
            head(.array, UInt64(node.count))
            for child in tape.children(of: index) { try write(child, depth: depth + 1) }
        case .unset, .object:
            try CodingLimits.checkNesting(at: depth)
            tape.sortMembers(of: index)
            head(.object, UInt64(tape.nodes[Int(index)].count))
            for child in tape.children(of: index) { try writeMember(child, depth: depth) }
        }
    }

    private mutating func writeMember(_ child: UInt32, depth: Int) throws(CodingFailure) {
        let node = tape.nodes[Int(child)]
        if let number = keys.firstIndex(where: { tape.haveSameKey($0, child) }) {
            varint(UInt64(number) << 1 | 1)
        } else {
            if keys.count < CompactFormat.keysMax { keys.append(child) }
            varint(UInt64(node.keyLength) << 1)
            let start = Int(node.keyStart)
            bytes.append(contentsOf: tape.text[start..<start + Int(node.keyLength)])
        }
        try write(child, depth: depth + 1)
    }

    private mutating func text(_ kind: CompactFormat.Kind, _ node: Tape.Node) {
        head(kind, UInt64(node.count))
        let start = Int(node.payload)
        bytes.append(contentsOf: tape.text[start..<start + Int(node.count)])
    }

    private mutating func head(_ kind: CompactFormat.Kind, _ argument: UInt64) {
        if argument < 15 {
            bytes.append(kind.rawValue << 4 | UInt8(argument))
        } else {
            bytes.append(kind.rawValue << 4 | 15)
            varint(argument - 15)
        }
    }

    private mutating func varint(_ value: UInt64) {
        var value = value
        while value >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: value) | 0x80)
            value >>= 7
        }
        bytes.append(UInt8(value))
    }

    private mutating func fixed(_ value: UInt64, _ count: Int) {
        for place in 0..<count {
            bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(8 * place)))
        }
    }
}

extension Tape {
    /// Whether two members have the same key.
    func haveSameKey(_ left: UInt32, _ right: UInt32) -> Bool {
        let (a, b) = (nodes[Int(left)], nodes[Int(right)])
        guard a.keyLength == b.keyLength else { return false }
        return text.withUnsafeBufferPointer { text in
            for place in 0..<Int(a.keyLength)
            where text[Int(a.keyStart) + place] != text[Int(b.keyStart) + place] {
                return false
            }
            return true
        }
    }
}
