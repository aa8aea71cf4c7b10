// What the code of ``CompactAction()`` calls, besides the beginnings of objects and cases.

extension CompactOutput {
    /// Writes a field that writes itself.
    ///
    /// - Parameters:
    ///   - value: The field.
    ///   - key: Its key.
    @inlinable
    public mutating func encode(_ value: some CompactCodable, forKey key: StaticString) {
        writeKey(key)
        // What does not fit is not written, however deep it is.
        if isWhole { value.write(to: &self) }
    }
}

extension CompactInput {
    /// Reads a field that reads itself.
    ///
    /// - Parameter key: Its key.
    /// - Returns: The field.
    /// - Throws: ``CompactMismatch`` if the next value is another one.
    @inlinable
    public mutating func decode<Value: CompactCodable>(
        forKey key: StaticString
    ) throws(CompactMismatch) -> Value {
        try readKey(key)
        return try nested()
    }

    /// Reads a field that reads itself, if it is next.
    ///
    /// - Parameters:
    ///   - key: Its key.
    ///   - optionals: How many optional fields are still to come. It falls if the field is there.
    /// - Returns: The field; nil if another one is next.
    /// - Throws: ``CompactMismatch`` if the field has another value.
    @inlinable
    public mutating func decodeIfPresent<Value: CompactCodable>(
        forKey key: StaticString, of optionals: inout Int
    ) throws(CompactMismatch) -> Value? {
        guard optionals > 0, isKey(key) else { return nil }
        optionals -= 1
        return try nested()
    }

    /// Reads the beginning of an enum case of which some fields are optional. If the next value is another one, it reads
    /// nothing.
    ///
    /// - Parameters:
    ///   - name: The case's name.
    ///   - fields: How many fields it has at least, and at most.
    /// - Returns: How many of the optional fields follow; nil if the next value is another one.
    @inlinable
    public mutating func beginCase(_ name: StaticString, fields: ClosedRange<Int>) -> Int? {
        let start = position
        let known = keys.count
        if head(0x80) == 1, isKey(name), let count = head(0x80),
            fields.contains(Int(clamping: count))
        {
            return Int(count) - fields.lowerBound
        }
        position = start
        keys.count = known
        return nil
    }

    /// Reads the beginning of an object of which some fields are optional.
    ///
    /// - Parameter fields: How many fields it has at least, and at most.
    /// - Returns: How many of the optional fields follow.
    /// - Throws: ``CompactMismatch`` if the next value is another one.
    @inlinable
    public mutating func beginObject(fields: ClosedRange<Int>) throws(CompactMismatch) -> Int {
        guard let count = head(0x80), fields.contains(Int(clamping: count)) else {
            throw CompactMismatch()
        }
        return Int(count) - fields.lowerBound
    }

    /// Reads a value within another one. Deeper ones than any that `Codable` reads are left to it, which refuses them.
    @inlinable @inline(__always)
    mutating func nested<Value: CompactCodable>() throws(CompactMismatch) -> Value {
        guard depth < Self.depthMax else { throw CompactMismatch() }
        depth += 1
        let value = try Value(from: &self)
        depth -= 1
        return value
    }

    /// How many values may contain one another.
    @usableFromInline static var depthMax: Int { 64 }
}
