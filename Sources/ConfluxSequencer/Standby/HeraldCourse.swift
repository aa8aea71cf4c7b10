import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// When a tenure says that it serves, and when it is given up since it can't: rule 47.
///
/// Where neither saying so nor an append has succeeded for a while, others take this one for gone, and may have the
/// tenure: so it is given up. That only spares nodes a sequencer that can't commit anything; what fences is the log.
package struct HeraldCourse: Sendable {
    /// How often it is said.
    private static let pause = Duration.milliseconds(250)
    /// The pause behind a failure.
    private static let failurePause = Duration.milliseconds(50)
    /// How long the log may confirm nothing. While etcd chooses a leader, two seconds by its defaults, nobody can claim
    /// the log either.
    private static let doubtMax = Duration.milliseconds(2_500)
    /// How long the thread that serves may have no turn; it has one each second. A sequencer that hangs falls silent, so
    /// that others take over.
    private static let hangMax = Duration.seconds(3)

    private var word: ServingWord
    /// When the last saying that succeeded had begun.
    private var saidAt: Duration
    /// When it is said next.
    package private(set) var dueAt: Duration

    /// A tenure has begun.
    ///
    /// - Parameters:
    ///   - epoch: Its epoch.
    ///   - address: Where nodes reach it.
    ///   - now: When it begins.
    package init(of epoch: Epoch, at address: String, begun now: Duration) {
        word = ServingWord(epoch: epoch, address: address, renewal: 0, standing: .serving)
        (saidAt, dueAt) = (now, now)
    }

    /// The tenure's epoch.
    package var epoch: Epoch { word.epoch }

    /// It is time to say it.
    ///
    /// - Parameters:
    ///   - now: When it is.
    ///   - turned: When the thread that serves had its last turn.
    /// - Returns: What is said; nil if the sequencer hangs.
    package mutating func say(at now: Duration, turned: Duration) -> ServingWord? {
        dueAt = now + Self.pause
        guard now - turned <= Self.hangMax else { return nil }
        word.renewal += 1
        return word
    }

    /// It was said; saying it began then.
    package mutating func said(since begun: Duration) { saidAt = begun }

    /// It could not be said.
    ///
    /// - Parameters:
    ///   - error: Why.
    ///   - now: When that is heard.
    ///   - confirmed: When the log has last shown otherwise that no newer claim exists.
    /// - Returns: Why the tenure is over, or given up; nil if it continues. It is told until the tenure is over: at
    ///   first nobody may know of that yet.
    package mutating func failed(
        _ error: LogError, at now: Duration, confirmed: Duration
    ) -> SequencerEnd? {
        let end: SequencerEnd? =
            if error.code == .superseded {
                .superseded
            } else if now - max(saidAt, confirmed) >= Self.doubtMax {
                .logFailed(error.message, summary: error.code.summary)
            } else {
                nil
            }
        dueAt = now + (end == nil ? Self.failurePause : Self.pause)
        return end
    }

    /// The tenure is over.
    ///
    /// - Parameter successor: The address of the one that is to take over; nil for whoever stands by.
    /// - Returns: What is said.
    package mutating func leave(to successor: String?) -> ServingWord {
        word.renewal += 1
        word.standing = .left(successor: successor)
        return word
    }
}
