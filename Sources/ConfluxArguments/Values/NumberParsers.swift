extension ValueParser where Value: FixedWidthInteger {
    /// A whole number in decimal digits.
    ///
    /// - Parameter range: The numbers that are accepted.
    /// - Returns: A parser whose errors say what was expected, or which bound was passed.
    public static func integer(in range: ClosedRange<Value>) -> ValueParser<Value> {
        ValueParser("N") { (text: String) throws(InvalidValue) in
            guard let value = Value(text), !text.hasPrefix("+"), range.contains(value) else {
                // Only a number can be too large.
                let isTooMuch =
                    !text.isEmpty
                    && text.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains)
                    && (Value(text).map { $0 > range.upperBound } ?? true)
                let expected =
                    range.upperBound == .max && !isTooMuch
                    ? "of at least \(range.lowerBound)"
                    : "from \(range.lowerBound) to \(range.upperBound)"
                throw InvalidValue("'\(text)' is not a whole number \(expected)")
            }
            return value
        }
    }
}

extension ValueParser where Value == Int {
    /// A whole number of at least 1.
    public static var positiveInteger: ValueParser<Int> { integer(in: 1...Int.max) }

    /// A number of bytes: plain, or with `B`, `KiB`, `MiB`, `GiB` or `TiB`.
    ///
    /// The decimal units (`kB`, `MB`) are not accepted, because half of all people mean the binary
    /// ones by them.
    ///
    /// - Parameter range: The sizes, in bytes, that are accepted.
    /// - Returns: A parser whose errors say what was expected, or which bound was passed.
    public static func byteSize(in range: ClosedRange<Int> = 0...Int.max) -> ValueParser<Int> {
        ValueParser("SIZE", describe: Units.bytes.describe) {
            (text: String) throws(InvalidValue) in
            guard let size = try Units.bytes.parse(text, in: range) else {
                throw InvalidValue(
                    "'\(text)' is not a size; write whole bytes, or a whole number with KiB, MiB, "
                        + "GiB or TiB, such as 64KiB")
            }
            return size
        }
    }
}

extension ValueParser where Value == Duration {
    /// A duration: a whole number and `ns`, `us`, `ms`, `s`, `m`, `h` or `d`.
    ///
    /// Nothing longer than 292 years is accepted.
    ///
    /// - Parameter range: The durations that are accepted.
    /// - Returns: A parser whose errors say what was expected, or which bound was passed.
    public static func duration(
        in range: ClosedRange<Duration> = .zero ... .nanoseconds(Int64.max)
    ) -> ValueParser<Duration> {
        // Seconds with 18 decimals soon overflow 64 bits; nanoseconds last for 292 years.
        let bounds = nanoseconds(range.lowerBound)...nanoseconds(range.upperBound)
        return ValueParser("DURATION", describe: { Units.time.describe(nanoseconds($0)) }) {
            (text: String) throws(InvalidValue) in
            guard let count = try Units.time.parse(text, in: bounds) else {
                throw InvalidValue(
                    "'\(text)' is not a duration; write a whole number and a unit, such as "
                        + "250ms, 5s or 1m")
            }
            return .nanoseconds(count)
        }
    }
}

/// A duration in whole nanoseconds, limited to the range of 64 bits.
private func nanoseconds(_ duration: Duration) -> Int {
    let (seconds, attoseconds) = duration.components
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overflowToo) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
    guard !overflow, !overflowToo else { return seconds < 0 ? Int.min : Int.max }
    return Int(sum)
}

/// The units of a quantity.
private struct Units: Sendable {
    /// The units of a size. Plain bytes are written without one.
    static let bytes = Units(
        zero: "0",
        all: [
            ("B", 1), ("", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30),
            ("TiB", 1 << 40),
        ])
    /// The units of a duration.
    static let time = Units(
        zero: "0s",
        all: [
            ("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000),
            ("m", 60_000_000_000), ("h", 3_600_000_000_000), ("d", 86_400_000_000_000),
        ])

    let zero: String
    /// From the smallest to the largest.
    let all: [(name: String, size: Int)]

    /// The shortest text for exactly this amount.
    func describe(_ amount: Int) -> String {
        guard amount > 0, let unit = all.last(where: { amount % $0.size == 0 }) else { return zero }
        return "\(amount / unit.size)\(unit.name)"
    }

    /// Reads digits and a unit.
    ///
    /// - Returns: nil if the text is something else.
    /// - Throws: What is wrong with an amount outside the range.
    func parse(_ text: String, in range: ClosedRange<Int>) throws(InvalidValue) -> Int? {
        // Other characters may be equal to a unit's by Unicode, such as the sign of the kelvin to K.
        guard text.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        let digits = text.prefix { ("0"..."9").contains($0) }
        let name = text[digits.endIndex...]
        guard !digits.isEmpty, let unit = all.first(where: { $0.name == name }) else { return nil }
        let product = Int(digits)?.multipliedReportingOverflow(by: unit.size)
        guard let product, !product.overflow, product.partialValue <= range.upperBound else {
            throw InvalidValue("'\(text)' is too much; the most is \(describe(range.upperBound))")
        }
        guard product.partialValue >= range.lowerBound else {
            throw InvalidValue(
                "'\(text)' is too little; the least is \(describe(range.lowerBound))")
        }
        return product.partialValue
    }
}
