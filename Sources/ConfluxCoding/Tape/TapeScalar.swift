/// A type for whose values `Codable` asks by methods of their own. Each of the coders has one method for all of them.
protocol TapeScalar: Encodable, ShapedValue {
    /// Reads the value of a node.
    static func decoded(by decoder: TapeDecoder) throws -> Self
    /// Makes the value that of a node.
    func encode(by encoder: TapeEncoder)
}

extension Bool: TapeScalar {
    package static var shape: ActionCatalog.Kind { .boolean }
    package static var madeUp: Bool { false }

    static func decoded(by decoder: TapeDecoder) throws -> Bool {
        switch decoder.content.kind {
        case .yes: return true
        case .no: return false
        default: throw decoder.mismatch(Bool.self, "true or false")
        }
    }

    func encode(by encoder: TapeEncoder) { encoder.tape.set(encoder.node, self ? .yes : .no) }
}

extension String: TapeScalar {
    package static var shape: ActionCatalog.Kind { .string }
    package static var madeUp: String { "" }

    static func decoded(by decoder: TapeDecoder) throws -> String {
        switch decoder.content.kind {
        case .string: return decoder.tape.string(of: decoder.node)
        case .bytes: return decoder.tape.base64(of: decoder.node)
        default: throw decoder.mismatch(String.self, "a string")
        }
    }

    func encode(by encoder: TapeEncoder) { encoder.tape.set(encoder.node, string: self) }
}

extension Double: TapeScalar {
    package static var shape: ActionCatalog.Kind { .number }
    package static var madeUp: Double { 0 }

    static func decoded(by decoder: TapeDecoder) throws -> Double {
        let node = decoder.content
        switch node.kind {
        case .double: return Double(bitPattern: node.payload)
        case .float: return JSONWriter.double(of: node.floatValue)
        case .natural, .negative:
            return JSONInteger(bits: node.payload, isNegative: node.kind == .negative).rounded
        default: throw decoder.mismatch(Double.self, "a number")
        }
    }

    func encode(by encoder: TapeEncoder) {
        encoder.tape.set(encoder.node, .double, payload: bitPattern)
    }
}

extension Float: TapeScalar {
    package static var shape: ActionCatalog.Kind { .number }
    package static var madeUp: Float { 0 }

    static func decoded(by decoder: TapeDecoder) throws -> Float {
        let node = decoder.content
        if node.kind == .float { return node.floatValue }
        let value = Float(try Double.decoded(by: decoder))
        guard value.isFinite else {
            throw decoder.corrupted("expected a number that fits a Float")
        }
        return value
    }

    func encode(by encoder: TapeEncoder) {
        encoder.tape.set(encoder.node, .float, payload: UInt64(bitPattern))
    }
}

extension ShapedValue where Self: FixedWidthInteger {
    package static var shape: ActionCatalog.Kind { .integer }
    package static var madeUp: Self { 0 }
}

extension TapeScalar where Self: FixedWidthInteger {
    @inline(__always)
    static func decoded(by decoder: TapeDecoder) throws -> Self {
        let node = decoder.content
        let value: Self? =
            switch node.kind {
            case .natural: Self(exactly: node.payload)
            case .negative: Self(exactly: Int64(bitPattern: node.payload))
            // Languages with only one kind of number write 5.0 for 5.
            case .double: Self(exactly: Double(bitPattern: node.payload))
            default: throw decoder.mismatch(Self.self, "a whole number")
            }
        guard let value else {
            throw decoder.corrupted("expected a whole number from \(Self.min) to \(Self.max)")
        }
        return value
    }

    @inline(__always)
    func encode(by encoder: TapeEncoder) {
        let bits = UInt64(truncatingIfNeeded: self)
        encoder.tape.set(encoder.node, self < 0 ? .negative : .natural, payload: bits)
    }
}

extension Int: TapeScalar {}
extension Int8: TapeScalar {}
extension Int16: TapeScalar {}
extension Int32: TapeScalar {}
extension Int64: TapeScalar {}
extension UInt: TapeScalar {}
extension UInt8: TapeScalar {}
extension UInt16: TapeScalar {}
extension UInt32: TapeScalar {}
extension UInt64: TapeScalar {}
