/// The bytes to which a ``CompactCodable`` writes itself, of a bounded size. See `CompactFormat` for the
/// format.
///
/// If a value does not fit, `Codable` encodes it instead.
public struct CompactOutput: ~Copyable {
    /// The most distinct keys in a value.
    public static var keysMax: Int { 8 }

    @usableFromInline let buffer: UnsafeMutableRawBufferPointer
    /// How many bytes are written; the first one is the format.
    @usableFromInline var count = 1
    /// Whether everything so far has fitted.
    @usableFromInline var isWhole = true
    @usableFromInline var keys = CompactKeys()

    /// Begins after the format byte.
    init(_ buffer: UnsafeMutableRawBufferPointer) {
        self.buffer = buffer
        buffer[0] = CompactFormat.format
    }

    /// Begins an enum case. Its fields follow.
    ///
    /// - Parameters:
    ///   - name: The case's name.
    ///   - fields: How many fields follow.
    @inlinable
    public mutating func beginCase(_ name: StaticString, fields: Int) {
        beginObject(fields: 1)
        writeKey(name)
        beginObject(fields: fields)
    }

    /// Begins an object. Its fields follow.
    ///
    /// - Parameter fields: How many fields follow.
    @inlinable
    public mutating func beginObject(fields: Int) { head(0x80, UInt64(fields)) }

    /// Begins an object that is a field.
    ///
    /// - Parameters:
    ///   - fields: How many fields follow.
    ///   - key: The field's key.
    @inlinable
    public mutating func beginObject(fields: Int, forKey key: StaticString) {
        writeKey(key)
        beginObject(fields: fields)
    }

    /// Writes an integer of up to 64 bits. A wider one can't be encoded.
    @inlinable
    public mutating func write<Number: FixedWidthInteger>(
        _ value: Number, forKey key: StaticString
    ) {
        writeKey(key)
        write(integer: value)
    }

    @inlinable @inline(__always)
    mutating func write(integer value: some FixedWidthInteger) {
        if type(of: value).bitWidth > 64 {
            // `Codable` can't encode it either.
            isWhole = false
        } else if let natural = UInt64(exactly: value) {
            head(0x10, natural)
        } else if let negative = Int64(exactly: value) {
            head(0x20, UInt64(bitPattern: ~negative))
        } else {
            isWhole = false
        }
    }

    /// Writes a boolean.
    @inlinable
    public mutating func write(_ value: Bool, forKey key: StaticString) {
        writeKey(key)
        write(bool: value)
    }

    @inlinable @inline(__always)
    mutating func write(bool value: Bool) { head(0, value ? 2 : 1) }

    /// Writes a floating-point number. One that is not finite is left to `Codable`, which refuses it.
    @inlinable
    public mutating func write(_ value: Double, forKey key: StaticString) {
        writeKey(key)
        write(double: value)
    }

    @inlinable @inline(__always)
    mutating func write(double value: Double) {
        guard value.isFinite, hasRoom(9) else { return isWhole = false }
        buffer[count] = 0x30
        buffer.storeBytes(
            of: value.bitPattern.littleEndian, toByteOffset: count + 1, as: UInt64.self)
        count += 9
    }

    @inlinable @inline(__always)
    mutating func write(float value: Float) {
        guard value.isFinite, hasRoom(5) else { return isWhole = false }
        buffer[count] = 0x40
        buffer.storeBytes(
            of: value.bitPattern.littleEndian, toByteOffset: count + 1, as: UInt32.self)
        count += 5
    }

    /// Writes a text.
    @inlinable
    public mutating func write(_ value: String, forKey key: StaticString) {
        writeKey(key)
        write(string: value)
    }

    @inlinable @inline(__always)
    mutating func write(string value: String) {
        var value = value
        value.withUTF8 { text in
            head(0x50, UInt64(text.count))
            copy(UnsafeRawBufferPointer(text))
        }
    }

    /// Writes bytes that are the whole value, as `Codable` writes a single `Data`.
    @inlinable
    public mutating func write(_ bytes: RawSpan) {
        head(0x60, UInt64(bytes.byteCount))
        bytes.withUnsafeBytes { copy($0) }
    }

    /// Writes bytes, as `Codable` writes a field that is a `Data`.
    @inlinable
    public mutating func write(_ bytes: RawSpan, forKey key: StaticString) {
        writeKey(key)
        write(bytes)
    }

    // MARK: Bytes

    @inlinable @inline(__always)
    func hasRoom(_ bytes: Int) -> Bool { isWhole && bytes <= buffer.count - count }

    @inlinable @inline(__always)
    mutating func head(_ kind: UInt8, _ argument: UInt64) {
        // A head and the longest varint.
        guard hasRoom(11) else { return isWhole = false }
        if argument < 15 {
            buffer[count] = kind | UInt8(truncatingIfNeeded: argument)
            count += 1
        } else {
            buffer[count] = kind | 15
            count += 1
            varint(argument - 15)
        }
    }

    @inlinable @inline(__always)
    mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            buffer[count] = UInt8(truncatingIfNeeded: rest) | 0x80
            count += 1
            rest >>= 7
        }
        buffer[count] = UInt8(truncatingIfNeeded: rest)
        count += 1
    }

    @inlinable @inline(__always)
    mutating func copy(_ bytes: UnsafeRawBufferPointer) {
        guard hasRoom(bytes.count) else { return isWhole = false }
        UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: bytes)
        count += bytes.count
    }

    /// Writes a key, or its number if the key was written before.
    @inlinable @inline(__always)
    mutating func writeKey(_ key: StaticString) {
        let text = UnsafeRawBufferPointer(start: key.utf8Start, count: key.utf8CodeUnitCount)
        if let number = keys.number(of: text, in: UnsafeRawBufferPointer(buffer)) {
            guard hasRoom(1) else { return isWhole = false }
            buffer[count] = UInt8(truncatingIfNeeded: number << 1 | 1)
            count += 1
            return
        }
        // The length of a key of less than 64 bytes fits in one byte.
        guard text.count < 64, hasRoom(1 + text.count), keys.add(at: count + 1, text.count) else {
            return isWhole = false
        }
        buffer[count] = UInt8(truncatingIfNeeded: text.count << 1)
        count += 1
        copy(text)
    }
}

/// The keys of one value, by their places in its bytes.
@usableFromInline
struct CompactKeys {
    /// For each key: its start in the upper half, and its length in the lower half.
    @usableFromInline var places:
        (
            UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64
        ) = (0, 0, 0, 0, 0, 0, 0, 0)
    @usableFromInline var count = 0

    @inlinable
    init() {}

    @inlinable @inline(__always)
    subscript(number: Int) -> (start: Int, length: Int) {
        withUnsafeBytes(of: places) { places in
            let place = places.load(fromByteOffset: 8 * number, as: UInt64.self)
            return (Int(place >> 32), Int(place & 0xFFFF_FFFF))
        }
    }

    /// The number of a key; nil if it is new.
    @inlinable @inline(__always)
    func number(of text: UnsafeRawBufferPointer, in bytes: UnsafeRawBufferPointer) -> Int? {
        var number = 0
        while number < count {
            let (start, length) = self[number]
            if length == text.count, text.elementsEqual(bytes[start..<start + length]) {
                return number
            }
            number += 1
        }
        return nil
    }

    /// - Returns: Whether there was room for the key.
    @inlinable @inline(__always)
    mutating func add(at start: Int, _ length: Int) -> Bool {
        guard count < CompactOutput.keysMax else { return false }
        withUnsafeMutableBytes(of: &places) {
            $0.storeBytes(
                of: UInt64(start) << 32 | UInt64(length), toByteOffset: 8 * count, as: UInt64.self)
        }
        count += 1
        return true
    }
}
