import ConfluxVocabulary

// The simple fields of the grammar, in the order of `docs/protocol.md`: how each is read and
// written.

extension FrameReader {
    /// Reads a field whose type says how it is encoded.
    mutating func read<Value: WireField>(
        _ expected: String = "a record"
    ) throws(WireError) -> Value {
        try Value(reading: &self, expected)
    }

    /// Reads a number of at most 2⁶³ − 1. Signed 64 bits hold it in any language, and adding a
    /// count to it overflows nowhere.
    @inline(__always)
    mutating func number(_ expected: String) throws(WireError) -> UInt64 {
        let at = offset
        let value = try fixed(UInt64.self, expected)
        guard value <= UInt64(Int64.max) else {
            throw .malformed(at: at, expected: "\(expected), at most 2^63 − 1")
        }
        return value
    }

    /// Reads a number of at least 1.
    @inline(__always)
    mutating func positive(_ expected: String) throws(WireError) -> UInt64 {
        let at = offset
        let value = try number(expected)
        guard value > 0 else { throw .malformed(at: at, expected: "\(expected), at least 1") }
        return value
    }

    /// Reads how many consecutive numbers begin with `first`: at least one. The last of them is
    /// also a ``number(_:)``.
    @inline(__always)
    mutating func run(from first: UInt64, _ expected: String) throws(WireError) -> UInt32 {
        let at = offset
        let value = try fixed(UInt32.self, expected)
        guard value > 0 else { throw .malformed(at: at, expected: "\(expected), at least 1") }
        guard first + UInt64(value - 1) <= UInt64(Int64.max) else {
            throw .malformed(at: at, expected: "\(expected), the last number at most 2^63 − 1")
        }
        return value
    }
}

extension FixedFieldWriter {
    /// Writes a number. No log has one above 2⁶³ − 1, and no peer accepts one, so any higher one that a program makes up
    /// is written as that.
    mutating func number(_ value: UInt64) { fixed(min(value, UInt64(Int64.max))) }

    mutating func number(_ value: some WireNumber) { number(value.rawValue) }

    mutating func identifier(_ value: Identifier) {
        // Big-endian, so that the bytes read like the text.
        fixed(value.high.byteSwapped)
        fixed(value.low.byteSwapped)
    }
}

extension FrameWriter {
    /// Writes fields whose types say how they are encoded.
    mutating func put<each Field: WireField>(_ field: repeat each Field) {
        repeat (each field).write(to: &self)
    }

    /// Writes one of the alternatives of the grammar: its number, then its fields.
    mutating func alternative<each Field: WireField>(_ number: UInt8, _ field: repeat each Field) {
        fixed(number)
        repeat (each field).write(to: &self)
    }
}

/// A number that the writer of a request chooses, or one without a meaning of its own.
extension UInt64: WireField {
    init(reading reader: inout FrameReader, _ expected: String) throws(WireError) {
        self = try reader.fixed(UInt64.self, expected)
    }

    func write(to writer: inout FrameWriter) { writer.fixed(self) }
}

extension UInt32: WireField {
    init(reading reader: inout FrameReader, _ expected: String) throws(WireError) {
        self = try reader.fixed(UInt32.self, expected)
    }

    func write(to writer: inout FrameWriter) { writer.fixed(self) }
}

/// A number of at most 2⁶³ − 1, with a type of its own.
protocol WireNumber: WireField {
    init(_ value: UInt64)
    var rawValue: UInt64 { get }
}

extension WireNumber {
    init(reading reader: inout FrameReader, _ expected: String) throws(WireError) {
        self.init(try reader.number(expected))
    }

    func write(to writer: inout FrameWriter) { writer.number(rawValue) }
}

extension SequenceNumber: WireNumber {}
extension Epoch: WireNumber {}
extension Incarnation: WireNumber {}

extension Timestamp: WireField {
    init(reading reader: inout FrameReader, _ expected: String) throws(WireError) {
        self.init(try reader.fixed(Int64.self, expected))
    }

    func write(to writer: inout FrameWriter) { writer.fixed(rawValue) }
}

extension Duration: WireField {
    init(reading reader: inout FrameReader, _ expected: String) throws(WireError) {
        // `number` keeps it within Int64.
        self = .nanoseconds(Int64(try reader.number(expected)))
    }

    /// Writes whole nanoseconds. A value outside 0 … 2⁶³ − 1 becomes the nearest of these.
    func write(to writer: inout FrameWriter) {
        writer.fixed(UInt64(max(0, wholeNanoseconds)))
    }
}

extension Identifier: WireField {
    init(reading reader: inout FrameReader, _ expected: String) throws(WireError) {
        let high = try reader.fixed(UInt64.self, expected).byteSwapped
        self.init(high: high, low: try reader.fixed(UInt64.self, expected).byteSwapped)
    }

    func write(to writer: inout FrameWriter) { writer.identifier(self) }
}

extension Digest: WireField {
    init(reading reader: inout FrameReader, _ expected: String) throws(WireError) {
        let bytes = try reader.cut(Digest.byteCount, expected)
        self.init { hash in bytes.withUnsafeBytes { hash.copyMemory(from: $0) } }
    }

    func write(to writer: inout FrameWriter) { writer.raw(bytes[...]) }
}

extension Bool: WireField {
    init(reading reader: inout FrameReader, _ expected: String) throws(WireError) {
        let at = reader.offset
        switch try reader.fixed(UInt8.self, expected) {
        case 0: self = false
        case 1: self = true
        default: throw .malformed(at: at, expected: "\(expected), 0 or 1")
        }
    }

    func write(to writer: inout FrameWriter) { writer.fixed(UInt8(self ? 1 : 0)) }
}

/// One of the alternatives of the grammar. Any other value breaks the grammar.
protocol WireAlternative: WireField, RawRepresentable
where RawValue: FixedWidthInteger & UnsignedInteger {}

extension WireAlternative {
    init(reading reader: inout FrameReader, _ expected: String) throws(WireError) {
        let at = reader.offset
        guard let value = Self(rawValue: try reader.fixed(RawValue.self, expected)) else {
            throw .malformed(at: at, expected: expected)
        }
        self = value
    }

    func write(to writer: inout FrameWriter) { writer.fixed(rawValue) }
}

extension PayloadCoding: WireAlternative {}
extension UpgradePolicy: WireAlternative {}
extension FreezeReason: WireAlternative {}
extension Hello.Role: WireAlternative {}
extension Expected.Reason: WireAlternative {}
extension Batch.Kind: WireAlternative {}

/// A code of a table in `docs/protocol.md`. Later versions may add codes.
protocol WireCode: WireField, RawRepresentable
where RawValue: FixedWidthInteger & UnsignedInteger {}

extension WireCode {
    init(reading reader: inout FrameReader, _ expected: String) throws(WireError) {
        let at = reader.offset
        let raw = try reader.fixed(RawValue.self, expected)
        guard let code = Self(rawValue: raw) else {
            throw .unknownCode(UInt16(truncatingIfNeeded: raw), at: at, expected: expected)
        }
        self = code
    }

    func write(to writer: inout FrameWriter) { writer.fixed(rawValue) }
}

extension ByeCode: WireCode {}
extension RejectionCode: WireCode {}
extension QuestionFailure: WireCode {}

/// A text for people.
extension String: WireField {
    init(reading reader: inout FrameReader, _ expected: String) throws(WireError) {
        let at = reader.offset
        let length = Int(try reader.fixed(UInt16.self, expected))
        guard length <= WireLimits.textBytesMax else {
            throw .limitExceeded(
                at: at, expected: expected, found: UInt64(length),
                limit: UInt64(WireLimits.textBytesMax))
        }
        guard let text = String(validating: try reader.cut(length, expected), as: UTF8.self) else {
            throw .malformed(at: at, expected: "\(expected), in UTF-8")
        }
        self = text
    }

    /// What is above the limit is cut off between two scalars: a slice begins and ends at scalars, whatever index it
    /// is given.
    func write(to writer: inout FrameWriter) {
        let end = utf8.index(
            utf8.startIndex, offsetBy: WireLimits.textBytesMax, limitedBy: utf8.endIndex)
        let kept = self[..<(end ?? endIndex)]
        writer.fixed(UInt16(kept.utf8.count))
        writer.characters(of: kept)
    }
}

/// Bytes behind their length.
extension Bytes: WireField {
    init(reading reader: inout FrameReader, _ expected: String) throws(WireError) {
        self = try reader.cut(Int(try reader.fixed(UInt32.self, expected)), expected)
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(UInt32(count))
        writer.raw(self)
    }
}

extension Optional: WireField where Wrapped: WireField {
    init(reading reader: inout FrameReader, _ expected: String) throws(WireError) {
        let at = reader.offset
        switch try reader.fixed(UInt8.self, expected) {
        case 0: self = nil
        case 1: self = try Wrapped(reading: &reader, expected)
        default: throw .malformed(at: at, expected: "whether there is \(expected), 0 or 1")
        }
    }

    func write(to writer: inout FrameWriter) {
        (self != nil).write(to: &writer)
        self?.write(to: &writer)
    }
}

extension Array: WireField where Element: WireField {
    init(reading reader: inout FrameReader, _ expected: String) throws(WireError) {
        let limit = reader.limits.elementsPerListMax
        self = try reader.list(limit: limit, expected)
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(UInt32(count))
        for value in self { value.write(to: &writer) }
    }
}

extension Name: WireField {
    init(reading reader: inout FrameReader, _: String) throws(WireError) {
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

extension StoreName: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            state: try coder.field(value?.state), instance: try coder.field(value?.instance))
    }
}

extension StoreVersion: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            sequence: try coder.field(value?.sequence, "the number of a store's version"),
            epoch: try coder.field(value?.epoch, "the epoch of a store's version"))
    }
}

extension EncodedState: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            coding: try coder.field(value?.coding, "a state's coding"),
            bytes: try coder.field(value?.bytes, "a state"))
    }
}

extension Target: WireField {
    init(reading reader: inout FrameReader, _ expected: String) throws(WireError) {
        let at = reader.offset
        switch try reader.fixed(UInt8.self, "a target") {
        case 1: self = .store(try reader.read())
        case 2: self = .state(try reader.read())
        case 3: self = .event(try reader.read())
        case 4:
            let (event, states): (Name, [Name]) = (
                try reader.read(), try reader.read("the states that handle an event")
            )
            guard !states.isEmpty else {
                throw .malformed(at: at, expected: "the states that handle an event")
            }
            self = .event(event, of: states)
        default: throw .malformed(at: at, expected: "a target")
        }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .store(let store): writer.alternative(1, store)
        case .state(let state): writer.alternative(2, state)
        case .event(let event, []): writer.alternative(3, event)
        case .event(let event, let states): writer.alternative(4, event, states)
        }
    }
}

extension HostingSubject: WireField {
    init(reading reader: inout FrameReader, _ expected: String) throws(WireError) {
        let at = reader.offset
        switch try reader.fixed(UInt8.self, "a store or a state") {
        case 1: self = .store(try reader.read())
        case 2: self = .state(try reader.read())
        default: throw .malformed(at: at, expected: "a store or a state")
        }
    }

    func write(to writer: inout FrameWriter) { target.write(to: &writer) }
}
