import ConfluxArguments
import ConfluxVocabulary
import Foundation

extension ValueParser where Value == Timestamp {
    /// A date and a time of day, with `Z` or an offset from UTC, as RFC 3339 has it.
    static var time: ValueParser<Timestamp> {
        ValueParser("TIME") { (text: String) throws(InvalidValue) in
            guard let (seconds, nanoseconds) = secondsSince1970(text) else {
                throw InvalidValue(
                    "'\(text)' is not a time; write a date, a time of day, and Z or the offset from UTC, such as "
                        + "2030-01-01T00:00:00Z or 2030-01-01T02:00:00+02:00")
            }
            let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
            let (sum, carry) = whole.addingReportingOverflow(nanoseconds)
            guard !overflow, !carry else {
                throw InvalidValue(
                    "'\(text)' is beyond the times that a log can have; write one from 1678 to 2261"
                )
            }
            return Timestamp(sum)
        }
    }
}

/// Parses `YYYY-MM-DDThh:mm:ss`, a fraction of up to nine digits, and `Z` or `±hh:mm`.
///
/// Foundation counts the days. Its own parser takes the 30th of February, and what follows a time.
private func secondsSince1970(_ text: String) -> (seconds: Int64, nanoseconds: Int64)? {
    let form =
        /([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))/
    guard
        let (_, year, month, day, hour, minute, second, fraction, sign, ahead, minutesAhead) =
            text.wholeMatch(of: form)?.output
    else { return nil }
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = .gmt
    let components = DateComponents(
        calendar: calendar, year: Int(year), month: Int(month), day: Int(day), hour: Int(hour),
        minute: Int(minute), second: Int(second))
    let offset = (hours: Int64(ahead ?? "0") ?? 0, minutes: Int64(minutesAhead ?? "0") ?? 0)
    guard components.isValidDate, let date = components.date, offset.hours < 24,
        offset.minutes < 60
    else { return nil }
    let digits = (fraction ?? "") + repeatElement("0", count: 9 - (fraction?.count ?? 0))
    return (
        Int64(date.timeIntervalSince1970)
            - (offset.hours * 60 + offset.minutes) * (sign == "-" ? -60 : 60),
        Int64(digits) ?? 0
    )
}
