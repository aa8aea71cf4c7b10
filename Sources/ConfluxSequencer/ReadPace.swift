import ConfluxProtocol
import Synchronization

/// Limits how fast the log is read for nodes while actions are committed.
///
/// Readers share processors with the stream on this machine, and often where the nodes run. So while commits
/// are appended, the reading thread pauses after each answer, and all readers together get at most
/// ``bytesPerSecondMax``. Without commits there is no pause.
///
/// The rate is measured (docs/measurements.md): on two processors, 64 readers at this rate less than double a
/// stream's receipt p99.
final class ReadPace: Sendable {
    /// The most bytes of answers to read in a second while actions are committed.
    static let bytesPerSecondMax = 256 << 20
    /// For how long after an append the stream counts as active.
    static let appendSpan = Duration.milliseconds(100)

    /// When the last append began, in nanoseconds; `.min` before the first.
    private let appendedAt = Atomic<Int64>(.min)

    /// Notes that an append begins. Called by the serving thread.
    func appended(at now: Duration) {
        appendedAt.store(Self.nanoseconds(now), ordering: .relaxed)
    }

    /// How long to pause after an answer.
    ///
    /// - Parameters:
    ///   - byteCount: The answer's bytes.
    ///   - now: The time.
    /// - Returns: The pause; zero if no commit was appended within ``appendSpan``.
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
    /// The number of bytes that were read for an answer.
    var readByteCount: Int {
        guard case .read(_, let outcome) = self else { return 0 }
        switch outcome {
        case .commits(let commits, _): return commits.reduce(0) { $0 + $1.count }
        case .snapshot(let chunk, _): return chunk.bytes.count
        case .failed: return 0
        }
    }
}
