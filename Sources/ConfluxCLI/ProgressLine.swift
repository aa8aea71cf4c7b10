import ConfluxWorker
import Foundation
import Synchronization

/// A line on a terminal that says how far the work is, and is written over.
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
    ///   - isOn: Whether the command shows one at all; it does so on a terminal alone.
    ///   - interval: How long a line stays at least.
    init(isOn: Bool, interval: Duration = .milliseconds(200)) {
        isShown = isOn && Appearance.ofErrors.canRedraw
        self.interval = interval
    }

    /// Says it, unless it was said a moment ago.
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

    /// How far a work is.
    ///
    /// - Parameters:
    ///   - count: How much is done.
    ///   - total: How much there is; nil if that is not known.
    ///   - unit: What is counted.
    ///   - share: Which part is done, from 0 to 1; nil if that is not known.
    ///   - elapsed: How long the work has gone on.
    /// - Returns: The count and the rate, and where they are known the total, the part and the time left.
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

    /// Takes the line away, before something else is written.
    func clear() {
        if isShown { Diagnostics.write(raw: "\r\u{1B}[K") }
    }
}
