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

    /// Takes the line away, before something else is written.
    func clear() {
        if isShown { Diagnostics.write(raw: "\r\u{1B}[K") }
    }
}
