import Dispatch
import Foundation

/// Shows on a terminal the progress of a command that copies a log and then checks it.
///
/// Only one thread uses it. While a log is copied, a queue of its own measures the copy.
final class LogProgress {
    // Without an interval: updates already come only every 200 ms, or every 8 MiB of entries.
    private let line = ProgressLine(isOn: true, interval: .zero)
    private let queue = DispatchQueue(label: "conflux-progress")
    private var timer: (any DispatchSourceTimer)?
    private var look: (@Sendable () -> Void)?
    private var started = ContinuousClock.now

    /// Begins to show the progress of the copying.
    ///
    /// - Parameters:
    ///   - source: The folder of the log.
    ///   - target: The folder of the copy.
    func copying(from source: String, to target: String) {
        guard line.isShown else { return }
        let (total, begun) = (Self.bytes(in: source, ending: ".sqlite"), started)
        let look = { @Sendable [line] in
            let count = Self.bytes(in: target, ending: ".partial")
            line.show(
                ProgressLine.text(
                    count, of: max(count, total), .bytes, elapsed: ContinuousClock.now - begun))
        }
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.setEventHandler(handler: look)
        timer.schedule(deadline: .now(), repeating: .milliseconds(200))
        timer.resume()
        self.look = look
        self.timer = timer
    }

    /// Ends the copying; the check begins.
    func copied() {
        guard let timer, let look else { return started = ContinuousClock.now }
        timer.cancel()
        self.timer = nil
        // This waits for a measurement that is under way.
        queue.sync(execute: look)
        started = ContinuousClock.now
    }

    /// Shows how many entries were checked.
    ///
    /// - Parameters:
    ///   - count: How many were checked.
    ///   - total: How many there are.
    func checked(_ count: Int, of total: Int) {
        line.show(
            ProgressLine.text(count, of: total, .entries, elapsed: ContinuousClock.now - started))
    }

    /// Removes the line. Nothing is shown afterwards.
    func end() {
        copied()
        line.clear()
    }

    /// The total size of a folder's files whose names have this ending; 0 if there is no such
    /// folder.
    private static func bytes(in folder: String, ending suffix: String) -> Int {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.filter { $0.hasSuffix(suffix) }.reduce(0) { sum, name in
            var status = stat()
            return stat("\(folder)/\(name)", &status) == 0 ? sum + Int(status.st_size) : sum
        }
    }
}
