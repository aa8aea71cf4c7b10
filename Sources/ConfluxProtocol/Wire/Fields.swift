import ConfluxVocabulary

// The simple fields of the grammar, in the order of `docs/protocol.md`: how each is read and
// written.

extension FrameReader {
    /// Reads a number of at most 2⁶³ − 1. Signed 64 bits hold it in any language, and adding a
    /// count to it overflows nowhere.
    mutating func number(_ expected: String) throws(WireError) -> UInt64 {
        let at = offset
        let value = try fixed(UInt64.self, expected)
        guard value <= UInt64(Int64.max) else {
            throw .malformed(at: at, expected: "\(expected), at most 2^63 − 1")
        }
        return value
    }

    /// Reads a number of at least 1.
    mutating func positive(_ expected: String) throws(WireError) -> UInt64 {
        let at = offset
        let value = try number(expected)
        guard value > 0 else { throw .malformed(at: at, expected: "\(expected), at least 1") }
        return value
    }

    /// Reads how many consecutive numbers begin with `first`: at least one. The last of them is
    /// also a ``number(_:)``.
    mutating func run(from first: UInt64, _ expected: String) throws(WireError) -> UInt32 {
        let at = offset
        let value = try fixed(UInt32.self, expected)
        guard value > 0 else { throw .malformed(at: at, expected: "\(expected), at least 1") }
        guard first + UInt64(value - 1) <= UInt64(Int64.max) else {
            throw .malformed(at: at, expected: "\(expected), the last number at most 2^63 − 1")
        }
        return value
    }

    mutating func sequence(_ expected: String) throws(WireError) -> SequenceNumber {
        SequenceNumber(try number(expected))
    }

    mutating func epoch(_ expected: String) throws(WireError) -> Epoch {
        Epoch(try number(expected))
    }

    mutating func incarnation(_ expected: String) throws(WireError) -> Incarnation {
        Incarnation(try number(expected))
    }

    mutating func timestamp() throws(WireError) -> Timestamp {
        Timestamp(try fixed(Int64.self, "a timestamp"))
    }

    mutating func duration(_ expected: String) throws(WireError) -> Duration {
        // `number` keeps it within Int64.
        .nanoseconds(Int64(try number(expected)))
    }

    mutating func identifier(_ expected: String) throws(WireError) -> Identifier {
        // Big-endian, so that the bytes read like the text.
        let high = try fixed(UInt64.self, expected).byteSwapped
        let low = try fixed(UInt64.self, expected).byteSwapped
        return Identifier(high: high, low: low)
    }

    mutating func flag(_ expected: String) throws(WireError) -> Bool {
        let at = offset
        switch try fixed(UInt8.self, expected) {
        case 0: return false
        case 1: return true
        default: throw .malformed(at: at, expected: "\(expected), 0 or 1")
        }
    }

    /// Reads one of the alternatives of the grammar. Any other value breaks the grammar.
    mutating func alternative<Value: RawRepresentable>(
        _ type: Value.Type, _ expected: String
    ) throws(WireError) -> Value where Value.RawValue: FixedWidthInteger & UnsignedInteger {
        let at = offset
        guard let value = Value(rawValue: try fixed(Value.RawValue.self, expected)) else {
            throw .malformed(at: at, expected: expected)
        }
        return value
    }

    /// Reads a code of a table in `docs/protocol.md`. Later versions may add codes.
    mutating func code<Code: RawRepresentable>(
        _ type: Code.Type, _ expected: String
    ) throws(WireError) -> Code where Code.RawValue: FixedWidthInteger & UnsignedInteger {
        let at = offset
        let raw = try fixed(Code.RawValue.self, expected)
        guard let code = Code(rawValue: raw) else {
            throw .unknownCode(UInt16(truncatingIfNeeded: raw), at: at, expected: expected)
        }
        return code
    }

    mutating func text(_ expected: String) throws(WireError) -> String {
        let at = offset
        let length = Int(try fixed(UInt16.self, expected))
        guard length <= WireLimits.textBytesMax else {
            throw .limitExceeded(
                at: at, expected: expected, found: UInt64(length),
                limit: UInt64(WireLimits.textBytesMax))
        }
        guard let text = String(validating: try cut(length, expected), as: UTF8.self) else {
            throw .malformed(at: at, expected: "\(expected), in UTF-8")
        }
        return text
    }

    mutating func block(_ expected: String) throws(WireError) -> Bytes {
        try cut(Int(try fixed(UInt32.self, expected)), expected)
    }

    mutating func optional<Value: WireField>(
        _ type: Value.Type, _ expected: String
    ) throws(WireError) -> Value? {
        guard try flag("whether there is \(expected)") else { return nil }
        return try Value(reading: &self)
    }

    mutating func list<Value: WireField>(
        _ type: Value.Type, _ expected: String
    ) throws(WireError) -> [Value] {
        let count = try count(
            limit: limits.elementsPerListMax, elementBytesMin: Value.bytesMin, expected)
        var values: [Value] = []
        values.reserveCapacity(count)
        for _ in 0..<count {
            values.append(try Value(reading: &self))
        }
        return values
    }
}

extension FixedFieldWriter {
    /// Writes a number. No log has one above 2⁶³ − 1, and no peer accepts one, so any higher one that a program makes up
    /// is written as that.
    mutating func number(_ value: UInt64) { fixed(min(value, UInt64(Int64.max))) }

    mutating func number(_ value: some RawRepresentable<UInt64>) {
        number(value.rawValue)
    }

    mutating func timestamp(_ value: Timestamp) {
        fixed(value.rawValue)
    }

    /// Writes whole nanoseconds. A value outside 0 … 2⁶³ − 1 becomes the nearest of these.
    mutating func duration(_ value: Duration) {
        let (seconds, attoseconds) = value.components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, carry) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
        if value < .zero {
            fixed(UInt64(0))
        } else {
            fixed(overflow || carry ? UInt64(Int64.max) : UInt64(sum))
        }
    }

    mutating func identifier(_ value: Identifier) {
        fixed(value.high.byteSwapped)
        fixed(value.low.byteSwapped)
    }

    mutating func flag(_ value: Bool) {
        fixed(UInt8(value ? 1 : 0))
    }

    mutating func code<Code: RawRepresentable>(
        _ value: Code
    ) where Code.RawValue: FixedWidthInteger {
        fixed(value.rawValue)
    }
}

extension FrameWriter {
    /// Writes a text for people. What is above the limit is cut off between two scalars: a slice
    /// begins and ends at scalars, whatever index it is given.
    mutating func text(_ value: String) {
        let utf8 = value.utf8
        let end = utf8.index(
            utf8.startIndex, offsetBy: WireLimits.textBytesMax, limitedBy: utf8.endIndex)
        let kept = value[..<(end ?? value.endIndex)]
        fixed(UInt16(kept.utf8.count))
        characters(of: kept)
    }

    mutating func block(_ value: Bytes) {
        fixed(UInt32(value.count))
        raw(value)
    }

    mutating func optional(_ value: (some WireField)?) {
        flag(value != nil)
        value?.write(to: &self)
    }

    mutating func list(_ values: [some WireField]) {
        fixed(UInt32(values.count))
        for value in values {
            value.write(to: &self)
        }
    }
}

extension Name: WireField {
    static let bytesMin = 2

    init(reading reader: inout FrameReader) throws(WireError) {
        let at = reader.offset
        let length = Int(try reader.fixed(UInt8.self, "a name"))
        guard length <= Name.lengthMax else {
            throw .limitExceeded(
                at: at, expected: "a name", found: UInt64(length), limit: UInt64(Name.lengthMax)
            )
        }
        guard let name = Name(utf8: try reader.cut(length, "a name")) else {
            throw .malformed(at: at, expected: "a name: 1 to 64 of a-z 0-9 . _ -")
        }
        self = name
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(UInt8(text.utf8.count))
        writer.characters(of: text)
    }
}

extension StoreName: WireField {
    static let bytesMin = 2 * Name.bytesMin

    init(reading reader: inout FrameReader) throws(WireError) {
        let state = try Name(reading: &reader)
        self.init(state: state, instance: try Name(reading: &reader))
    }

    func write(to writer: inout FrameWriter) {
        state.write(to: &writer)
        instance.write(to: &writer)
    }
}

extension Target: WireField {
    static let bytesMin = 1 + Name.bytesMin

    init(reading reader: inout FrameReader) throws(WireError) {
        let at = reader.offset
        switch try reader.fixed(UInt8.self, "a target") {
        case 1: self = .store(try StoreName(reading: &reader))
        case 2: self = .state(try Name(reading: &reader))
        case 3: self = .event(try Name(reading: &reader))
        default: throw .malformed(at: at, expected: "a target")
        }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .store(let name):
            writer.fixed(UInt8(1))
            name.write(to: &writer)
        case .state(let name):
            writer.fixed(UInt8(2))
            name.write(to: &writer)
        case .event(let name):
            writer.fixed(UInt8(3))
            name.write(to: &writer)
        }
    }
}

extension EncodedState: WireField {
    static let bytesMin = 1 + 4

    init(reading reader: inout FrameReader) throws(WireError) {
        let coding = try reader.alternative(PayloadCoding.self, "a state's coding")
        self.init(coding: coding, bytes: try reader.block("a state"))
    }

    func write(to writer: inout FrameWriter) {
        writer.code(coding)
        writer.block(bytes)
    }
}
