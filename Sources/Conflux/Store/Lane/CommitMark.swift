import ConfluxVocabulary
import Synchronization

/// Records which ordered action a lane is committing, in a word of memory that outlives the
/// process. So the next process knows what this one was doing when it died.
///
/// The word is zero while nothing is committed. No other thread reads it, but it is stored with a
/// memory ordering: the compiler may leave out a plain store that is followed by a trap or by
/// another store, and just before a trap the store is the one that counts.
// Sendable: `suspect` is confined to the thread that serves the lane; the word is atomic.
package final class CommitMark: @unchecked Sendable {
    private let word: UnsafePointer<Atomic<UInt64>>
    /// An action that the process died of before; zero if there is none, or the store has got past
    /// it.
    private var suspect: UInt64
    private let whenPassed: @Sendable () -> Void

    /// Makes a mark.
    ///
    /// - Parameters:
    ///   - word: Where to record it. It must be valid for as long as `whenPassed` is kept.
    ///   - suspect: The number of an action that a process died of before; zero for none.
    ///   - whenPassed: Called at most once, in the lane, when the store has got past the suspect.
    package init(
        word: UnsafePointer<Atomic<UInt64>>, suspect: SequenceNumber,
        whenPassed: @escaping @Sendable () -> Void
    ) {
        self.word = word
        self.suspect = suspect.rawValue
        self.whenPassed = whenPassed
    }

    /// The lane is about to commit this action.
    @inline(__always)
    func begin(_ sequence: SequenceNumber) {
        word.pointee.store(sequence.rawValue, ordering: .releasing)
    }

    /// The lane has committed a run, and has come to this number.
    func end(at last: SequenceNumber) {
        word.pointee.store(0, ordering: .releasing)
        guard suspect != 0, last.rawValue >= suspect else { return }
        suspect = 0
        whenPassed()
    }
}
