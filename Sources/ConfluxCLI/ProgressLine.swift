import ConfluxWorker
import Foundation
import Synchronization

/// A line on a terminal that says how far the work is, and is written over.
final class ProgressLine: Sendable {
    private let isShown: Bool
    private let shownAt = Mutex(ContinuousClock.now)
    private static let interval = Duration.milliseconds(200)

    /// - Parameter isOn: Whether the command shows one at all; it does so on a terminal alone.
    init(isOn: Bool) { isShown = isOn && Appearance.ofErrors.canRedraw }

    /// Says it, unless it was said a moment ago.
    func show(_ text: @autoclosure () -> String) {
        guard isShown else { return }
        let now = ContinuousClock.now
        let isDue = shownAt.withLock { shownAt in
            guard now - shownAt > Self.interval else { return false }
            shownAt = now
            return true
        }
        if isDue { Diagnostics.write(raw: "\r\u{1B}[K\(text())") }
    }

    /// How far a work is that gets through a file.
    ///
    /// - Parameters:
    ///   - count: How many actions are done.
    ///   - share: Which part of the file they are, from 0 to 1; nil where nobody knows how much there is.
    ///   - elapsed: For how long it has gone on.
    /// - Returns: The count, the rate, and where it is known the part and the time left.
    static func text(_ count: Int, share: Double?, elapsed: Duration) -> String {
        let seconds = max(elapsed / .seconds(1), 0.001)
        let rate = "\(Int(Double(count) / seconds))/s"
        guard let share, share > 0 else { return "\(count) actions, \(rate)" }
        let left = Duration.seconds(Int((seconds * (1 - share) / share).rounded(.up)))
        let time = left.formatted(.units(allowed: [.hours, .minutes, .seconds], width: .narrow))
        return "\(count) actions, \(Int(share * 100)) %, \(rate), \(time) left"
    }

    /// Takes the line away, before something else is written.
    func clear() {
        if isShown { Diagnostics.write(raw: "\r\u{1B}[K") }
    }
}
