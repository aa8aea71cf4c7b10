import Dispatch
import Foundation

/// How far a command is that copies a log, and then checks it, on a terminal.
///
/// One thread uses it. While a log is copied, a queue of its own looks how large the copy is.
final class LogProgress {
    // Each look is 200 ms, or 8 MiB of entries, behind the one before.
    private let line = ProgressLine(isOn: true, interval: .zero)
    private let queue = DispatchQueue(label: "conflux-progress")
    private var timer: (any DispatchSourceTimer)?
    private var look: (@Sendable () -> Void)?
    private var started = ContinuousClock.now

    /// The copying begins.
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

    /// The copy is written, and its check begins.
    func copied() {
        guard let timer, let look else { return started = ContinuousClock.now }
        timer.cancel()
        self.timer = nil
        // Behind a look that is under way.
        queue.sync(execute: look)
        started = ContinuousClock.now
    }

    /// Entries were checked.
    ///
    /// - Parameters:
    ///   - count: How many.
    ///   - total: How many there are.
    func checked(_ count: Int, of total: Int) {
        line.show(
            ProgressLine.text(count, of: total, .entries, elapsed: ContinuousClock.now - started))
    }

    /// Takes the line away. Nothing is shown any more.
    func end() {
        copied()
        line.clear()
    }

    /// The bytes of a folder's files whose names end so; 0 if there is no such folder.
    private static func bytes(in folder: String, ending suffix: String) -> Int {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.filter { $0.hasSuffix(suffix) }.reduce(0) { sum, name in
            var status = stat()
            return stat("\(folder)/\(name)", &status) == 0 ? sum + Int(status.st_size) : sum
        }
    }
}
