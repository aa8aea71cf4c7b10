import ConfluxVocabulary

/// Reads the compact coding onto a tape, and checks all of it.
///
/// Hostile bytes cause an error: every count is checked against the remaining bytes before anything is
/// allocated, the depth is bounded, and texts are checked to be UTF-8. A payload takes at most 32 bytes of
/// tape for each of its own bytes.
struct CompactReader {
    private let input: UnsafeBufferPointer<UInt8>
    private let tape: Tape
    private var position = 0
    /// The places of the numbered keys in the tape's text.
    private var keys: [(start: Int, length: Int)] = []

    /// Reads one payload.
    ///
    /// - Parameters:
    ///   - bytes: The payload.
    ///   - tape: It is reset, and holds the value afterwards.
    ///   - sizeBytesMax: The most bytes to accept.
    /// - Throws: What was expected, with the offset from the first byte.
    static func read(
        _ bytes: UnsafeBufferPointer<UInt8>, into tape: Tape, sizeBytesMax: Int
    ) throws(CodingFailure) {
        tape.reset()
        guard bytes.count <= min(sizeBytesMax, CodingLimits.sizeBytesMax) else {
            throw CodingFailure(
                .tooLarge, "expected at most \(sizeBytesMax) bytes, found \(bytes.count)")
        }
        var reader = CompactReader(input: bytes, tape: tape)
        guard try reader.byte() == CompactFormat.format else {
            throw CodingFailure(
                .syntax, "expected the compact coding, format \(CompactFormat.format)",
                offset: 0)
        }
        try reader.readValue(0, depth: 0)
        guard reader.position == bytes.count else {
            throw reader.failure("expected the end after the value")
        }
    }

    private init(input: UnsafeBufferPointer<UInt8>, tape: Tape) {
        self.input = input
        self.tape = tape
    }

    private var left: Int { input.count - position }

    private func failure(_ message: String) -> CodingFailure {
        CodingFailure(.syntax, message, offset: position)
    }

    @inline(__always)
    private mutating func byte() throws(CodingFailure) -> UInt8 {
        guard position < input.count else { throw failure("expected more bytes, found the end") }
        defer { position += 1 }
        return input[position]
    }

    private mutating func varint() throws(CodingFailure) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            let next = try byte()
            guard shift < 63 || next <= 1 else { throw failure("expected a varint of 64 bits") }
            value |= UInt64(next & 0x7F) << shift
            if next < 0x80 {
                guard next != 0 || shift == 0 else {
                    throw failure("expected a varint in its shortest form")
                }
                return value
            }
            shift += 7
        }
    }

    private mutating func fixed(_ count: Int) throws(CodingFailure) -> UInt64 {
        guard left >= count else { throw failure("expected \(count) bytes, found \(left)") }
        var value: UInt64 = 0
        for place in 0..<count { value |= UInt64(input[position + place]) << UInt64(8 * place) }
        position += count
        return value
    }

    /// Checks a count of items that take at least `unit` bytes each.
    private func checked(_ count: UInt64, unit: Int) throws(CodingFailure) -> Int {
        guard count <= UInt64(left / unit) else {
            throw failure("expected no more than the \(left) bytes that are left, found \(count)")
        }
        return Int(count)
    }

    private mutating func readValue(_ index: UInt32, depth: Int) throws(CodingFailure) {
        let head = try byte()
        guard let kind = CompactFormat.Kind(rawValue: head >> 4) else {
            position -= 1
            throw failure("expected a kind of value from 0 to 8, found \(head >> 4)")
        }
        var argument = UInt64(head & 0xF)
        if argument == 15 {
            let (sum, overflow) = try varint().addingReportingOverflow(15)
            guard !overflow else { throw failure("expected an argument of 64 bits") }
            argument = sum
        }
        switch kind {
        case .simple:
            guard argument <= 2 else { throw failure("expected null, false or true") }
            tape.set(index, argument == 0 ? .null : argument == 1 ? .no : .yes)
        case .natural: tape.set(index, .natural, payload: argument)
        case .negative:
            guard argument < 1 << 63 else { throw failure("expected a number from -2^63") }
            tape.set(index, .negative, payload: ~argument)
        case .double:
            let bits = try fixed(8)
            guard argument == 0, Double(bitPattern: bits).isFinite else {
                throw failure("expected a finite number")
            }
            tape.set(index, .double, payload: bits)
        case .float:
            let bits = try fixed(4)
            guard argument == 0, Float(bitPattern: UInt32(bits)).isFinite else {
                throw failure("expected a finite number")
            }
            tape.set(index, .float, payload: bits)
        case .string:
            let start = try copyText(try checked(argument, unit: 1), isText: true)
            tape.setText(index, .string, from: start)
        case .bytes:
            let start = try copyText(try checked(argument, unit: 1), isText: false)
            tape.setText(index, .bytes, from: start)
        case .array:
            try CodingLimits.checkNesting(at: depth, offset: position)
            let count = try checked(argument, unit: 1)
            tape.set(index, .array)
            for _ in 0..<count {
                try readValue(tape.appendElement(to: index), depth: depth + 1)
            }
        case .object:
            try CodingLimits.checkNesting(at: depth, offset: position)
            try readMembers(try checked(argument, unit: 2), of: index, depth: depth)
        }
    }

    private mutating func readMembers(
        _ count: Int, of index: UInt32, depth: Int
    ) throws(CodingFailure) {
        let beginning = position
        tape.set(index, .object)
        for _ in 0..<count {
            let key = try readKey()
            let member = tape.appendMember(
                to: index, keyStart: key.start, keyLength: key.length)
            try readValue(member, depth: depth + 1)
        }
        if let twice = tape.duplicateKey(in: index) {
            throw CodingFailure(
                .duplicateKey, "expected each key once, found \"\(tape.key(of: twice))\" twice",
                offset: beginning)
        }
    }

    private mutating func readKey() throws(CodingFailure) -> (start: Int, length: Int) {
        let code = try varint()
        if code & 1 == 1 {
            guard code >> 1 < UInt64(keys.count) else {
                throw failure("expected one of \(keys.count) keys, found number \(code >> 1)")
            }
            return keys[Int(code >> 1)]
        }
        let length = try checked(code >> 1, unit: 1)
        let key = (start: try copyText(length, isText: true), length: length)
        if keys.count < CompactFormat.keysMax { keys.append(key) }
        return key
    }

    /// Appends bytes to the tape's text.
    ///
    /// - Returns: The place where they begin.
    private mutating func copyText(_ count: Int, isText: Bool) throws(CodingFailure) -> Int {
        let run = UnsafeBufferPointer(rebasing: input[position..<position + count])
        if isText, let invalid = UTF8Check.firstInvalid(run) {
            throw CodingFailure(.invalidText, "expected UTF-8", offset: position + invalid)
        }
        let start = tape.text.count
        tape.text.append(contentsOf: run)
        position += count
        return start
    }
}
