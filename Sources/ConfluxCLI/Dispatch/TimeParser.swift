import ConfluxArguments
import ConfluxVocabulary

extension ValueParser where Value == Timestamp {
    /// A date and a time of day, with `Z` or an offset from UTC, as RFC 3339 has it.
    static var time: ValueParser<Timestamp> {
        ValueParser("TIME") { (text: String) throws(InvalidValue) in
            guard let time = CalendarTime(text) else {
                throw InvalidValue(
                    "'\(text)' is not a time; write a date, a time of day, and Z or the offset from UTC, such as "
                        + "2030-01-01T00:00:00Z or 2030-01-01T02:00:00+02:00")
            }
            guard let timestamp = time.timestamp else {
                throw InvalidValue(
                    "'\(text)' is beyond the times that a log can have; write one from 1678 to 2261"
                )
            }
            return timestamp
        }
    }
}

/// A date and a time of day.
private struct CalendarTime {
    private var days: Int
    private var seconds: Int
    private var nanoseconds: Int

    /// Parses `YYYY-MM-DDThh:mm:ss`, a fraction of up to nine digits, and `Z` or `±hh:mm`.
    init?(_ text: String) {
        var rest = Array(text.utf8)[...]
        func take(_ mark: Character) -> Bool {
            guard rest.first == mark.asciiValue else { return false }
            rest.removeFirst()
            return true
        }
        func number(_ count: Int, in range: ClosedRange<Int>) -> Int? {
            let digits = rest.prefix(count)
            guard digits.count == count, digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
                return nil
            }
            rest = rest.dropFirst(count)
            let value = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
            return range.contains(value) ? value : nil
        }
        guard let year = number(4, in: 0...9_999), take("-"), let month = number(2, in: 1...12),
            take("-"), let day = number(2, in: 1...Self.days(of: month, in: year)),
            take("T") || take("t") || take(" "), let hour = number(2, in: 0...23), take(":"),
            let minute = number(2, in: 0...59), take(":"), let second = number(2, in: 0...59)
        else { return nil }
        nanoseconds = 0
        if take(".") {
            let count = rest.prefix { (0x30...0x39).contains($0) }.count
            guard (1...9).contains(count), let fraction = number(count, in: 0...999_999_999) else {
                return nil
            }
            nanoseconds = (count..<9).reduce(fraction) { value, _ in value * 10 }
        }
        var offset = 0
        if !(take("Z") || take("z")) {
            let isBehind = take("-")
            guard isBehind || take("+"), let hours = number(2, in: 0...23), take(":"),
                let minutes = number(2, in: 0...59)
            else { return nil }
            offset = (hours * 60 + minutes) * (isBehind ? -60 : 60)
        }
        guard rest.isEmpty else { return nil }
        // Years begin in March here, so that the leap day is the last one.
        let shifted = month < 3 ? year - 1 : year
        let era = (shifted - (shifted < 0 ? 399 : 0)) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month < 3 ? 9 : -3)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        days = era * 146_097 + dayOfEra - 719_468
        seconds = (hour * 60 + minute) * 60 + second - offset
    }

    /// nil if there is none.
    var timestamp: Timestamp? {
        let (whole, overflow) = (days * 86_400 + seconds).multipliedReportingOverflow(
            by: 1_000_000_000)
        let (sum, overflowsToo) = whole.addingReportingOverflow(nanoseconds)
        return overflow || overflowsToo ? nil : Timestamp(Int64(sum))
    }

    private static func days(of month: Int, in year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}
