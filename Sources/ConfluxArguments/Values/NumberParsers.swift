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
        ValueParser("SIZE", describe: ByteUnit.describe) { (text: String) throws(InvalidValue) in
            guard let (digits, unit) = splitUnit(text),
                let scale = unit.isEmpty ? 1 : ByteUnit(rawValue: unit)?.bytes
            else {
                throw InvalidValue(
                    "'\(text)' is not a size; write whole bytes, or a whole number with KiB, MiB, "
                        + "GiB or TiB, such as 64KiB")
            }
            return try scaled(
                text, digits, by: scale, in: range, describe: ByteUnit.describe)
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
        return ValueParser("DURATION", describe: { DurationUnit.describe(nanoseconds($0)) }) {
            (text: String) throws(InvalidValue) in
            guard let (digits, name) = splitUnit(text), let unit = DurationUnit(rawValue: name)
            else {
                throw InvalidValue(
                    "'\(text)' is not a duration; write a whole number and a unit, such as "
                        + "250ms, 5s or 1m")
            }
            let count = try scaled(
                text, digits, by: unit.nanoseconds, in: bounds,
                describe: DurationUnit.describe)
            return .nanoseconds(count)
        }
    }
}

/// The units of a size, smallest first.
private enum ByteUnit: String, CaseIterable {
    case byte = "B"
    case kibibyte = "KiB"
    case mebibyte = "MiB"
    case gibibyte = "GiB"
    case tebibyte = "TiB"

    var bytes: Int {
        switch self {
        case .byte: 1
        case .kibibyte: 1 << 10
        case .mebibyte: 1 << 20
        case .gibibyte: 1 << 30
        case .tebibyte: 1 << 40
        }
    }

    /// The shortest text for exactly this size. Plain bytes have no unit.
    static func describe(_ bytes: Int) -> String {
        guard let unit = allCases.last(where: { bytes > 0 && bytes % $0.bytes == 0 }),
            unit != .byte
        else { return String(bytes) }
        return "\(bytes / unit.bytes)\(unit.rawValue)"
    }
}

/// The units of a duration, shortest first.
private enum DurationUnit: String, CaseIterable {
    case nanosecond = "ns"
    case microsecond = "us"
    case millisecond = "ms"
    case second = "s"
    case minute = "m"
    case hour = "h"
    case day = "d"

    var nanoseconds: Int {
        switch self {
        case .nanosecond: 1
        case .microsecond: 1_000
        case .millisecond: 1_000_000
        case .second: 1_000_000_000
        case .minute: 60_000_000_000
        case .hour: 3_600_000_000_000
        case .day: 86_400_000_000_000
        }
    }

    /// The shortest text for exactly this duration.
    static func describe(_ nanoseconds: Int) -> String {
        guard nanoseconds > 0,
            let unit = allCases.last(where: { nanoseconds % $0.nanoseconds == 0 })
        else { return "\(nanoseconds)s" }
        return "\(nanoseconds / unit.nanoseconds)\(unit.rawValue)"
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

/// Cuts a text into its leading decimal digits and the unit after them; nil if there are no digits.
private func splitUnit(_ text: String) -> (digits: Substring, unit: String)? {
    // Other characters may be equal to a unit's by Unicode, such as the sign of the kelvin to K.
    guard text.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
    let digits = text.prefix { ("0"..."9").contains($0) }
    return digits.isEmpty ? nil : (digits, String(text[digits.endIndex...]))
}

/// Multiplies digits by a unit, and checks that the product is in a range.
private func scaled(
    _ text: String, _ digits: Substring, by scale: Int, in range: ClosedRange<Int>,
    describe: (Int) -> String
) throws(InvalidValue) -> Int {
    let product = Int(digits)?.multipliedReportingOverflow(by: scale)
    guard let product, !product.overflow, product.partialValue <= range.upperBound else {
        throw InvalidValue("'\(text)' is too much; the most is \(describe(range.upperBound))")
    }
    guard product.partialValue >= range.lowerBound else {
        throw InvalidValue(
            "'\(text)' is too little; the least is \(describe(range.lowerBound))")
    }
    return product.partialValue
}
