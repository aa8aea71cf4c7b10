import Foundation

/// Writes canonical JSON bytes: one value has one form.
///
/// There is no white space. Keys are in the order of their UTF-8 bytes. Integers are written in digits. Other
/// numbers are the shortest text that reads back as the same number, always with a fraction or an exponent,
/// so that they don't become integers. In strings only `"`, `\` and control characters are escaped: with
/// their short escapes if they have one, otherwise in lower-case hexadecimal digits.
struct JSONWriter {
    var bytes: [UInt8] = []

    // MARK: Values

    mutating func write(_ value: JSONValue, depth: Int) throws(CodingFailure) {
        switch value {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
        case .integer(let value): write(value)
        case .number(let value): try write(value)
        case .string(let value): write(value)
        case .array(let elements):
            try writeList("[", elements, "]", depth: depth) {
                (writer, element) throws(CodingFailure) in
                try writer.write(element, depth: depth + 1)
            }
        case .object(let members):
            try writeList("{", members, "}", depth: depth) {
                (writer, member) throws(CodingFailure) in
                writer.write(member.key)
                writer.bytes.append(UInt8(ascii: ":"))
                try writer.write(member.value, depth: depth + 1)
            }
        }
    }

    @inline(__always)
    private mutating func writeList<Items: Sequence>(
        _ opening: Unicode.Scalar, _ items: Items, _ closing: Unicode.Scalar, depth: Int,
        _ write: (inout JSONWriter, Items.Element) throws(CodingFailure) -> Void
    ) throws(CodingFailure) {
        try CodingLimits.checkNesting(at: depth)
        bytes.append(UInt8(ascii: opening))
        var isFirst = true
        for item in items {
            if !isFirst { bytes.append(UInt8(ascii: ",")) }
            isFirst = false
            try write(&self, item)
        }
        bytes.append(UInt8(ascii: closing))
    }

    // MARK: Tapes

    /// Writes a node and its children.
    mutating func write(_ tape: Tape, _ index: UInt32 = 0, depth: Int = 0) throws(CodingFailure) {
        let node = tape.nodes[Int(index)]
        switch node.kind {
        case .unset: bytes.append(contentsOf: "{}".utf8)
        case .null: bytes.append(contentsOf: "null".utf8)
        case .no: bytes.append(contentsOf: "false".utf8)
        case .yes: bytes.append(contentsOf: "true".utf8)
        case .natural, .negative:
            write(JSONInteger(bits: node.payload, isNegative: node.kind == .negative))
        case .double: try write(Double(bitPattern: node.payload))
        case .float: try write(node.floatValue)
        case .string: writeText(tape, Int(node.payload), Int(node.count))
        case .bytes: write(tape.base64(of: index))
        case .array:
            try writeList("[", tape.children(of: index), "]", depth: depth) {
                (writer, child) throws(CodingFailure) in
                try writer.write(tape, child, depth: depth + 1)
            }
        case .object:
            tape.sortMembers(of: index)
            try writeList("{", tape.children(of: index), "}", depth: depth) {
                (writer, child) throws(CodingFailure) in
                let node = tape.nodes[Int(child)]
                writer.writeText(tape, Int(node.keyStart), Int(node.keyLength))
                writer.bytes.append(UInt8(ascii: ":"))
                try writer.write(tape, child, depth: depth + 1)
            }
        }
    }

    private mutating func writeText(_ tape: Tape, _ start: Int, _ count: Int) {
        tape.text.withUnsafeBufferPointer { text in
            writeQuoted(UnsafeBufferPointer(rebasing: text[start..<start + count]))
        }
    }

    // MARK: Scalars

    mutating func write(_ value: JSONInteger) {
        if value.bits < 10, !value.isNegative {
            bytes.append(UInt8(ascii: "0") + UInt8(value.bits))
        } else {
            bytes.append(contentsOf: value.description.utf8)
        }
    }

    mutating func write(_ value: Double) throws(CodingFailure) {
        guard value.isFinite else { throw .notFinite("\(value)") }
        bytes.append(contentsOf: value.description.utf8)
    }

    private mutating func write(_ value: Float) throws(CodingFailure) {
        guard value.isFinite else { throw .notFinite("\(value)") }
        try write(Self.double(of: value))
    }

    /// The number with the fewest digits that reads back as the same `Float`.
    static func double(of value: Float) -> Double {
        if let short = Double(value.description), Float(short) == value { return short }
        return Double(value)
    }

    mutating func write(_ value: String) {
        var value = value
        value.withUTF8 { writeQuoted($0) }
    }

    private mutating func writeQuoted(_ text: UnsafeBufferPointer<UInt8>) {
        bytes.append(UInt8(ascii: "\""))
        var start = 0
        for (index, byte) in text.enumerated()
        where byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
            bytes.append(contentsOf: text[start..<index])
            start = index + 1
            bytes.append(UInt8(ascii: "\\"))
            switch byte {
            case 0x08: bytes.append(UInt8(ascii: "b"))
            case 0x09: bytes.append(UInt8(ascii: "t"))
            case 0x0A: bytes.append(UInt8(ascii: "n"))
            case 0x0C: bytes.append(UInt8(ascii: "f"))
            case 0x0D: bytes.append(UInt8(ascii: "r"))
            case 0..<0x20:
                bytes.append(contentsOf: byte < 0x10 ? "u000".utf8 : "u00".utf8)
                bytes.append(contentsOf: String(byte, radix: 16).utf8)
            default: bytes.append(byte)
            }
        }
        bytes.append(contentsOf: text[start...])
        bytes.append(UInt8(ascii: "\""))
    }
}

extension Tape {
    /// A byte run as text (RFC 4648, with padding).
    func base64(of index: UInt32) -> String {
        Data(content(of: index)).base64EncodedString()
    }
}

extension CodingFailure {
    static func notFinite(_ value: String) -> CodingFailure {
        CodingFailure(
            .numberOutOfRange, "expected a finite number: \(value) has no encoding; use an optional"
        )
    }
}
