import ConfluxProtocol
import Synchronization

/// How fast the log is read for nodes while actions are committed.
///
/// Readers share processors with the stream, here and often where they run. So while commits are appended,
/// the thread that reads pauses behind each answer, and all readers together get at most
/// ``bytesPerSecondMax``. Without commits nobody pauses.
///
/// The rate is measured (docs/performance.md): on two processors, 64 readers at this rate raise a stream's
/// receipt p99 less than twice.
final class ReadPace: Sendable {
    /// How many bytes of answers are read in a second while actions are committed.
    static let bytesPerSecondMax = 256 << 20
    /// How long after an append actions count as being committed.
    static let appendSpan = Duration.milliseconds(100)

    /// When the last append began, in nanoseconds; `.min` before the first.
    private let appendedAt = Atomic<Int64>(.min)

    /// An append begins. Called by the thread that serves.
    func appended(at now: Duration) {
        appendedAt.store(Self.nanoseconds(now), ordering: .relaxed)
    }

    /// How long to pause behind an answer.
    ///
    /// - Parameters:
    ///   - byteCount: The answer's bytes.
    ///   - now: The time.
    /// - Returns: The pause; zero where no commit was appended within ``appendSpan``.
    func pause(after byteCount: Int, at now: Duration) -> Duration {
        let appendedAt = appendedAt.load(ordering: .relaxed)
        guard appendedAt > Self.nanoseconds(now - Self.appendSpan) else { return .zero }
        return .seconds(1) * (Double(byteCount) / Double(Self.bytesPerSecondMax))
    }

    private static func nanoseconds(_ moment: Duration) -> Int64 {
        Int64(moment / .nanoseconds(1))
    }
}

extension SequencerInput {
    /// How many bytes of an answer were read.
    var readByteCount: Int {
        guard case .read(_, let outcome) = self else { return 0 }
        switch outcome {
        case .commits(let commits, _): return commits.reduce(0) { $0 + $1.count }
        case .snapshot(let chunk, _): return chunk.bytes.count
        case .failed: return 0
        }
    }
}
