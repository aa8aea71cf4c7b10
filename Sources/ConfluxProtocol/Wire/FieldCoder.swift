import ConfluxVocabulary

/// A value that has a place in the grammar.
protocol WireField {
    /// Reads a value.
    ///
    /// - Parameters:
    ///   - reader: Stands before the value, and behind it afterwards.
    ///   - expected: Names the value in errors. What consists of fields names each of these instead.
    /// - Throws: What is wrong with the bytes.
    init(reading reader: inout FrameReader, _ expected: String) throws(WireError)
    /// Writes the value.
    func write(to writer: inout FrameWriter)
}

/// A value that consists of fields, one behind the other. One description of them is both its reading and its
/// writing, so these can't differ:
///
/// ```swift
/// extension Fetch: WireRecord {
///     init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
///         self.init(
///             request: try coder.field(value?.request, "a request's number"),
///             from: try coder.field(value?.from, "the first number wanted"),
///             limitBytes: try coder.field(value?.limitBytes, "a limit in bytes"),
///             acknowledged: try coder.field(value?.acknowledged, "a delivery tag"))
///     }
/// }
/// ```
///
/// A reader ignores the value, and returns what it reads. A writer writes the value's fields, and returns them. The
/// compiler specialises the description for each of the two.
protocol WireRecord: WireField {
    /// Reads or writes each field, in the order of the grammar.
    ///
    /// - Parameters:
    ///   - value: What is written; nil if the record is read.
    ///   - coder: Reads or writes.
    /// - Throws: What is wrong with the bytes that are read.
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure)
}

extension WireRecord {
    init(reading reader: inout FrameReader, _ expected: String = "a record") throws(WireError) {
        try self.init(nil, &reader)
    }

    func write(to writer: inout FrameWriter) {
        _ = Self(self, &writer)
    }
}

/// Reads or writes the fields of a record.
protocol FieldCoder {
    /// What a reader throws. Writing can't fail.
    associatedtype Failure: Error

    /// How many bytes have been read or written.
    var offset: Int { get }

    /// A field whose type says how it is encoded.
    mutating func field<Value: WireField>(
        _ value: Value?, _ expected: String
    ) throws(Failure) -> Value

    /// A field that may be absent.
    mutating func optional<Value: WireField>(
        _ value: Value?, _ expected: String
    ) throws(Failure) -> Value?

    /// A number of at most 2⁶³ − 1.
    mutating func number(_ value: UInt64?, _ expected: String) throws(Failure) -> UInt64

    /// The same, at least 1.
    mutating func positive(_ value: UInt64?, _ expected: String) throws(Failure) -> UInt64

    /// How many consecutive numbers begin with `first`.
    mutating func run(
        _ value: UInt32?, from first: UInt64, _ expected: String
    ) throws(Failure) -> UInt32

    /// All bytes up to the end.
    mutating func rest(_ value: Bytes?) -> Bytes

    /// The content of the last extension with a tag, of those that fill the rest; nil if there is none.
    mutating func `extension`<Value: WireField>(
        _ tag: UInt16, _ value: Value?, _ expected: String
    ) throws(Failure) -> Value?

    /// The contents of all extensions with a tag, of those that fill the rest.
    mutating func extensions<Value: WireField>(
        _ tag: UInt16, _ values: [Value]
    ) throws(Failure) -> [Value]

    /// Refuses what a reader has read, unless a condition holds.
    func check(_ condition: Bool, at offset: Int, _ expected: String) throws(Failure)
}

extension FieldCoder {
    /// A record, which names its fields itself.
    mutating func field<Value: WireField>(_ value: Value?) throws(Failure) -> Value {
        try field(value, "a record")
    }

    /// A number that is not 0.
    mutating func positive(
        _ value: SequenceNumber?, _ expected: String
    ) throws(Failure) -> SequenceNumber {
        SequenceNumber(try positive(value?.rawValue, expected))
    }

    /// An extension whose content names its fields itself.
    mutating func `extension`<Value: WireRecord>(
        _ tag: UInt16, _ value: Value?
    ) throws(Failure) -> Value? {
        try self.extension(tag, value, "a record")
    }
}

extension FrameReader: FieldCoder {
    mutating func field<Value: WireField>(
        _ value: Value?, _ expected: String
    ) throws(WireError) -> Value {
        try Value(reading: &self, expected)
    }

    mutating func optional<Value: WireField>(
        _ value: Value?, _ expected: String
    ) throws(WireError) -> Value? {
        try Value?(reading: &self, expected)
    }

    mutating func number(_ value: UInt64?, _ expected: String) throws(WireError) -> UInt64 {
        try number(expected)
    }

    mutating func positive(_ value: UInt64?, _ expected: String) throws(WireError) -> UInt64 {
        try positive(expected)
    }

    mutating func run(
        _ value: UInt32?, from first: UInt64, _ expected: String
    ) throws(WireError) -> UInt32 {
        try run(from: first, expected)
    }

    mutating func rest(_ value: Bytes?) -> Bytes { cutRest() }

    // Whoever opened the frame, the block or the checkpoint skips the extensions at the end, and checks them all.
    mutating func `extension`<Value: WireField>(
        _ tag: UInt16, _ value: Value?, _ expected: String
    ) throws(WireError) -> Value? {
        var last: Value?
        var rest = self
        while let (found, body) = try rest.nextExtension() {
            var body = body
            if found == tag { last = try Value(reading: &body, expected) }
        }
        return last
    }

    mutating func extensions<Value: WireField>(
        _ tag: UInt16, _ values: [Value]
    ) throws(WireError) -> [Value] {
        var values: [Value] = []
        var rest = self
        while let (found, body) = try rest.nextExtension() {
            var body = body
            if found == tag { values.append(try Value(reading: &body, "an extension")) }
        }
        return values
    }

    func check(_ condition: Bool, at offset: Int, _ expected: String) throws(WireError) {
        guard condition else { throw .malformed(at: offset, expected: expected) }
    }
}

extension FrameWriter: FieldCoder {
    var offset: Int { bytes.count }

    mutating func field<Value: WireField>(_ value: Value?, _ expected: String) -> Value {
        let value = written(value, expected)
        value.write(to: &self)
        return value
    }

    mutating func optional<Value: WireField>(_ value: Value?, _ expected: String) -> Value? {
        value.write(to: &self)
        return value
    }

    mutating func number(_ value: UInt64?, _ expected: String) -> UInt64 {
        let value = written(value, expected)
        number(value)
        return value
    }

    mutating func positive(_ value: UInt64?, _ expected: String) -> UInt64 {
        number(value, expected)
    }

    mutating func run(_ value: UInt32?, from first: UInt64, _ expected: String) -> UInt32 {
        field(value, expected)
    }

    mutating func rest(_ value: Bytes?) -> Bytes {
        let value = written(value, "the rest")
        raw(value)
        return value
    }

    @discardableResult
    mutating func `extension`<Value: WireField>(
        _ tag: UInt16, _ value: Value?, _ expected: String
    ) -> Value? {
        if let value { append(value, tag) }
        return value
    }

    mutating func extensions<Value: WireField>(_ tag: UInt16, _ values: [Value]) -> [Value] {
        for value in values { append(value, tag) }
        return values
    }

    func check(_ condition: Bool, at offset: Int, _ expected: String) {}

    private mutating func append(_ content: some WireField, _ tag: UInt16) {
        fixed(tag)
        measured { content.write(to: &$0) }
    }

    private func written<Value>(_ value: Value?, _ expected: String) -> Value {
        guard let value else { preconditionFailure("nothing to write for \(expected)") }
        return value
    }
}
