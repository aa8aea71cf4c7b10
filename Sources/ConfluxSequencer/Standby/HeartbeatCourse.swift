import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// Decides when a term says that it serves, and when the term is given up because it can't say
/// so (rule 47).
///
/// If for a while neither such a word nor an append has succeeded, other sequencers assume that this one is
/// gone and may claim the log. So the term is given up. That only spares nodes a sequencer that can't
/// commit; the log alone fences.
package struct HeartbeatCourse: Sendable {
    /// The pause between two words.
    private static let pause = Duration.milliseconds(250)
    /// The pause after a failure.
    private static let failurePause = Duration.milliseconds(50)
    /// How long the log may confirm nothing. While etcd elects a leader, which takes two seconds by default,
    /// nobody else can claim the log either.
    private static let doubtMax = Duration.milliseconds(2_500)
    /// How long the serving thread may go without a turn; normally it has one each second. A sequencer that
    /// hangs falls silent, so that others take over.
    private static let hangMax = Duration.seconds(3)

    private var word: ServingWord
    /// When the last successful word was begun.
    private var saidAt: Duration
    /// When the next word is due.
    package private(set) var dueAt: Duration

    /// Begins a course for a new term.
    ///
    /// - Parameters:
    ///   - epoch: Its epoch.
    ///   - address: Where nodes reach it.
    ///   - now: When it begins.
    package init(of epoch: Epoch, at address: String, begun now: Duration) {
        word = ServingWord(epoch: epoch, address: address, renewal: 0, standing: .serving)
        (saidAt, dueAt) = (now, now)
    }

    /// The term's epoch.
    package var epoch: Epoch { word.epoch }

    /// Called when a word is due.
    ///
    /// - Parameters:
    ///   - now: The time.
    ///   - turned: When the serving thread had its last turn.
    /// - Returns: The word to say; nil if the sequencer hangs.
    package mutating func say(at now: Duration, turned: Duration) -> ServingWord? {
        dueAt = now + Self.pause
        guard now - turned <= Self.hangMax else { return nil }
        word.renewal += 1
        return word
    }

    /// Notes that the word was said; the attempt began at that time.
    package mutating func said(since begun: Duration) { saidAt = begun }

    /// Notes that the word could not be said.
    ///
    /// - Parameters:
    ///   - error: Why.
    ///   - now: The time.
    ///   - confirmed: When the log last showed by other means that no newer claim exists.
    /// - Returns: Why the term is over or given up; nil if it goes on. It is returned each time until the
    ///   term is over, since at first the receiver may not know of the term yet.
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

    /// Ends the course with its term.
    ///
    /// - Parameter successor: The address of the standby that is to take over; nil if any may.
    /// - Returns: The word to say.
    package mutating func leave(to successor: String?) -> ServingWord {
        word.renewal += 1
        word.standing = .left(successor: successor)
        return word
    }
}
