import ConfluxWorker
import Foundation
import Synchronization

/// A line on a terminal that shows the progress. Each update overwrites it.
final class ProgressLine: Sendable {
    /// What is counted.
    enum Unit: String {
        case actions, entries, bytes
    }

    /// Whether anything is shown.
    let isShown: Bool
    private let interval: Duration
    private let shownAt = Mutex(ContinuousClock.now)

    /// - Parameters:
    ///   - isOn: Whether the command wants to show it. It is shown only on a terminal.
    ///   - interval: The shortest time between two updates.
    init(isOn: Bool, interval: Duration = .milliseconds(200)) {
        isShown = isOn && Appearance.ofErrors.canRedraw
        self.interval = interval
    }

    /// Shows a text, unless one was shown a moment ago.
    func show(_ text: @autoclosure () -> String) {
        guard isShown else { return }
        let now = ContinuousClock.now
        let isDue = shownAt.withLock { shownAt in
            guard now - shownAt >= interval else { return false }
            shownAt = now
            return true
        }
        if isDue { Diagnostics.write(raw: "\r\u{1B}[K\(text())") }
    }

    /// The text for the progress of some work.
    ///
    /// - Parameters:
    ///   - count: How much is done.
    ///   - total: How much there is; nil if that is not known.
    ///   - unit: What is counted.
    ///   - share: The share that is done, from 0 to 1; nil if that is not known.
    ///   - elapsed: How long the work has taken so far.
    /// - Returns: The count and the rate, and, if known, the total, the share and the time left.
    static func text(
        _ count: Int, of total: Int? = nil, _ unit: Unit, share: Double? = nil, elapsed: Duration
    ) -> String {
        let seconds = max(elapsed / .seconds(1), 0.001)
        let rate = amount(Int(Double(count) / seconds), unit) + "/s"
        let whole = total.map { " of \(amount($0, unit))" } ?? ""
        let done = amount(count, unit) + whole + (unit == .bytes ? "" : " \(unit.rawValue)")
        let known = share ?? total.map { $0 > 0 ? Double(count) / Double($0) : 1 }
        guard let share = known.map({ min($0, 1) }), share > 0 else { return "\(done), \(rate)" }
        let left = Duration.seconds(Int((seconds * (1 - share) / share).rounded(.up)))
        let time = left.formatted(.units(allowed: [.hours, .minutes, .seconds], width: .narrow))
        return "\(done), \(Int(share * 100)) %, \(rate), \(time) left"
    }

    private static func amount(_ count: Int, _ unit: Unit) -> String {
        guard unit == .bytes else { return "\(count)" }
        return count >> 20 > 0 ? "\(count >> 20) MiB" : "\(count >> 10) KiB"
    }

    /// Removes the line, before something else is written.
    func clear() {
        if isShown { Diagnostics.write(raw: "\r\u{1B}[K") }
    }
}
