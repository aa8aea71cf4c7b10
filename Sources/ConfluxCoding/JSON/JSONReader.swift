import ConfluxVocabulary

/// Reads JSON text (RFC 8259) onto a tape, strictly.
///
/// Nothing that it accepts is silently lost or rounded, except the digits of a fraction that a `Double` can't
/// hold. It takes time linear in the text, except for sorting the keys of an object that are out of order,
/// and at most 32 bytes of tape for each byte of text.
struct JSONReader {
    private let input: UnsafeBufferPointer<UInt8>
    private let tape: Tape
    private var position = 0

    /// Reads one value.
    ///
    /// - Parameters:
    ///   - bytes: The text.
    ///   - tape: It is reset, and holds the value afterwards.
    ///   - sizeBytesMax: The most bytes to accept.
    /// - Throws: What was expected, with the offset from the first byte.
    static func read(
        _ bytes: some Sequence<UInt8>, into tape: Tape,
        sizeBytesMax: Int = CodingLimits.sizeBytesMax
    ) throws(CodingFailure) {
        let slice = bytes as? ArraySlice<UInt8> ?? ArraySlice(bytes as? [UInt8] ?? Array(bytes))
        try slice.withUnsafeBufferPointer { (bytes) throws(CodingFailure) in
            try read(bytes, into: tape, sizeBytesMax: sizeBytesMax)
        }
    }

    /// Reads one payload from contiguous memory.
    static func read(
        _ bytes: UnsafeBufferPointer<UInt8>, into tape: Tape, sizeBytesMax: Int
    ) throws(CodingFailure) {
        tape.reset()
        guard bytes.count <= min(sizeBytesMax, CodingLimits.sizeBytesMax) else {
            throw CodingFailure(
                .tooLarge, "expected at most \(sizeBytesMax) bytes, found \(bytes.count)")
        }
        var reader = JSONReader(input: bytes, tape: tape)
        reader.skipBlanks()
        try reader.readValue(0, depth: 0)
        reader.skipBlanks()
        if reader.position < bytes.count {
            throw reader.unexpected("the end after the value")
        }
    }

    private init(input: UnsafeBufferPointer<UInt8>, tape: Tape) {
        self.input = input
        self.tape = tape
    }

    private var current: UInt8? { position < input.count ? input[position] : nil }

    private mutating func skipBlanks() {
        while position < input.count {
            switch input[position] {
            case 0x20, 0x0A, 0x0D, 0x09: position += 1
            default: return
            }
        }
    }

    private func unexpected(_ expected: String) -> CodingFailure {
        let found =
            switch current {
            case nil: "the end"
            case .some(let byte) where (0x21...0x7E).contains(byte):
                "'\(Character(Unicode.Scalar(byte)))'"
            case .some(let byte):
                "byte 0x" + String(byte, radix: 16, uppercase: true)
            }
        return CodingFailure(.syntax, "expected \(expected), found \(found)", offset: position)
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        position += 1
        return true
    }

    private mutating func readValue(_ index: UInt32, depth: Int) throws(CodingFailure) {
        switch current {
        case UInt8(ascii: "{"): try readObject(index, depth: depth)
        case UInt8(ascii: "["): try readArray(index, depth: depth)
        case UInt8(ascii: "\""):
            let start = tape.text.count
            try readString()
            tape.setText(index, .string, from: start)
        case UInt8(ascii: "-"), .some(UInt8(ascii: "0")...UInt8(ascii: "9")):
            try readNumber(index)
        case UInt8(ascii: "t"): try readWord("true", .yes, index)
        case UInt8(ascii: "f"): try readWord("false", .no, index)
        case UInt8(ascii: "n"): try readWord("null", .null, index)
        default: throw unexpected("a JSON value")
        }
    }

    private mutating func readWord(
        _ word: StaticString, _ kind: Tape.Kind, _ index: UInt32
    ) throws(CodingFailure) {
        for place in 0..<word.utf8CodeUnitCount {
            guard take(word.utf8Start[place]) else { throw unexpected("'\(word)'") }
        }
        tape.set(index, kind)
    }

    private mutating func readArray(_ index: UInt32, depth: Int) throws(CodingFailure) {
        try CodingLimits.checkNesting(at: depth, offset: position)
        position += 1
        tape.set(index, .array)
        skipBlanks()
        if take(UInt8(ascii: "]")) { return }
        while true {
            skipBlanks()
            try readValue(tape.appendElement(to: index), depth: depth + 1)
            skipBlanks()
            if take(UInt8(ascii: ",")) { continue }
            if take(UInt8(ascii: "]")) { return }
            throw unexpected("',' or ']'")
        }
    }

    private mutating func readObject(_ index: UInt32, depth: Int) throws(CodingFailure) {
        try CodingLimits.checkNesting(at: depth, offset: position)
        let beginning = position
        position += 1
        tape.set(index, .object)
        skipBlanks()
        if take(UInt8(ascii: "}")) { return }
        while true {
            skipBlanks()
            guard current == UInt8(ascii: "\"") else { throw unexpected("a key in quotes") }
            let start = tape.text.count
            try readString()
            let member = tape.appendMember(
                to: index, keyStart: start, keyLength: tape.text.count - start)
            skipBlanks()
            guard take(UInt8(ascii: ":")) else { throw unexpected("':'") }
            skipBlanks()
            try readValue(member, depth: depth + 1)
            skipBlanks()
            if take(UInt8(ascii: ",")) { continue }
            if take(UInt8(ascii: "}")) { break }
            throw unexpected("',' or '}'")
        }
        if let twice = tape.duplicateKey(in: index) {
            throw CodingFailure(
                .duplicateKey, "expected each key once, found \"\(tape.key(of: twice))\" twice",
                offset: beginning)
        }
    }

    private mutating func readNumber(_ index: UInt32) throws(CodingFailure) {
        let start = position
        let isNegative = take(UInt8(ascii: "-"))
        var magnitude: UInt64 = 0
        var fits = true
        if take(UInt8(ascii: "0")) {
            if case .some(UInt8(ascii: "0")...UInt8(ascii: "9")) = current {
                throw unexpected("no digit after a leading 0")
            }
        } else {
            let digits = position
            while let digit = current, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) {
                let (shifted, high) = magnitude.multipliedReportingOverflow(by: 10)
                let (sum, carry) = shifted.addingReportingOverflow(UInt64(digit & 0xF))
                if high || carry { fits = false }
                magnitude = sum
                position += 1
            }
            if position == digits { throw unexpected("a digit") }
        }
        var isWhole = true
        if take(UInt8(ascii: ".")) {
            isWhole = false
            try skipDigits()
        }
        if current == UInt8(ascii: "e") || current == UInt8(ascii: "E") {
            isWhole = false
            position += 1
            if !take(UInt8(ascii: "-")) { _ = take(UInt8(ascii: "+")) }
            try skipDigits()
        }
        if isWhole {
            guard fits, !isNegative || magnitude <= 1 << 63 else {
                throw CodingFailure(
                    .numberOutOfRange,
                    """
                    expected a whole number from -2^63 to 2^64 - 1; write a larger one with a \
                    fraction or an exponent, or as a string
                    """, offset: start)
            }
            let bits = isNegative ? 0 &- magnitude : magnitude
            tape.set(index, isNegative && bits != 0 ? .negative : .natural, payload: bits)
        } else {
            let text = String(
                checkedUTF8: UnsafeBufferPointer(rebasing: input[start..<position]))
            guard let value = Double(text), value.isFinite else {
                throw CodingFailure(
                    .numberOutOfRange, "expected a number within ±1.7976931348623157e+308",
                    offset: start)
            }
            tape.set(index, .double, payload: value.bitPattern)
        }
    }

    private mutating func skipDigits() throws(CodingFailure) {
        let start = position
        while case .some(UInt8(ascii: "0")...UInt8(ascii: "9")) = current { position += 1 }
        if position == start { throw unexpected("a digit") }
    }

    // MARK: Strings

    /// Appends a string's content, unescaped, to the tape's text.
    private mutating func readString() throws(CodingFailure) {
        position += 1
        var start = position
        while let byte = current {
            switch byte {
            case UInt8(ascii: "\""):
                tape.text.append(contentsOf: input[start..<position])
                position += 1
                return
            case UInt8(ascii: "\\"):
                tape.text.append(contentsOf: input[start..<position])
                position += 1
                try readEscape()
                start = position
            case 0..<0x20: throw unexpected("control characters escaped in a string")
            case 0x20..<0x80: position += 1
            default:
                guard let length = UTF8Check.sequenceLength(input, at: position) else {
                    throw CodingFailure(
                        .invalidText, "expected UTF-8 in a string", offset: position)
                }
                position += length
            }
        }
        throw unexpected("'\"' at the end of a string")
    }

    private mutating func readEscape() throws(CodingFailure) {
        switch current {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"):
            tape.text.append(input[position])
        case UInt8(ascii: "b"): tape.text.append(0x08)
        case UInt8(ascii: "f"): tape.text.append(0x0C)
        case UInt8(ascii: "n"): tape.text.append(0x0A)
        case UInt8(ascii: "r"): tape.text.append(0x0D)
        case UInt8(ascii: "t"): tape.text.append(0x09)
        case UInt8(ascii: "u"):
            try readUnicodeEscape()
            return
        default: throw unexpected("one of \" \\ / b f n r t u after '\\'")
        }
        position += 1
    }

    private mutating func readUnicodeEscape() throws(CodingFailure) {
        let start = position - 1
        var value = UInt32(try readHexUnit())
        if (0xD800..<0xDC00).contains(value) {
            guard take(UInt8(ascii: "\\")) else { throw loneSurrogate(start) }
            guard current == UInt8(ascii: "u") else { throw loneSurrogate(start) }
            let low = UInt32(try readHexUnit())
            guard (0xDC00..<0xE000).contains(low) else { throw loneSurrogate(start) }
            value = 0x10000 + (value - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(value) else { throw loneSurrogate(start) }
        tape.text.append(contentsOf: UTF8.encode(scalar).map { Array($0) } ?? [])
    }

    private func loneSurrogate(_ offset: Int) -> CodingFailure {
        CodingFailure(
            .invalidText, "expected both halves of a surrogate pair, found one", offset: offset)
    }

    /// Reads `u` and four hexadecimal digits.
    private mutating func readHexUnit() throws(CodingFailure) -> UInt16 {
        position += 1
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let byte = current, let digit = Character(Unicode.Scalar(byte)).hexDigitValue
            else { throw unexpected("four hexadecimal digits after '\\u'") }
            unit = unit << 4 | UInt16(digit)
            position += 1
        }
        return unit
    }
}
