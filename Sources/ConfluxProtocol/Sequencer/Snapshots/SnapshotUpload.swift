import ConfluxHashing
import ConfluxVocabulary

/// A snapshot that is uploaded from replicas to the log, part by part. Rule 19 is implemented here.
///
///     waiting ──▶ asked ── part ──▶ saving ── saved ──▶ asked … ──▶ whole
///                  │ no answer, or gone: the next source, at the same offset
///
/// A part is requested once the part before it is in the log, so that at most one part of each
/// upload is in memory. Replicas with the same digest have the same bytes, so any of them can
/// continue where another one ended. The parts are hashed as they arrive. If the whole does not
/// have the digest in the end, it is given up.
struct SnapshotUpload: Sendable {
    let place: SnapshotPlace
    let reference: SnapshotReference
    /// The bytes of the entries that concerned the store up to the point.
    let load: UInt64
    /// Whether it becomes the state that openers begin with.
    let isConfirmed: Bool
    /// The replicas that have the state, without those that failed to send it.
    private var sources: [Incarnation]
    /// How many bytes have arrived: they are in the log, or on their way to it.
    private(set) var offset: UInt64 = 0
    private var hasher = DigestHasher()
    private(set) var step = Step.waiting

    enum Step: Sendable, Equatable {
        /// The upload waits for its turn.
        case waiting
        /// The first source was asked, and has until this time to answer.
        case asked(until: Duration)
        /// The log is saving a part.
        case saving
    }

    /// What kind of part has arrived.
    enum Taken: Sendable {
        /// The next part.
        case part(SnapshotPart)
        /// Not the part that was asked for.
        case other
        /// The last part, but the whole does not have the digest.
        case wrong
    }

    init(_ reference: SnapshotReference, of round: Votes.Round, isConfirmed: Bool) {
        place = round.place
        load = round.load
        sources = round.sources(of: reference.digest)
        self.reference = reference
        self.isConfirmed = isConfirmed
    }

    /// The replica that is asked for the next part; nil if no replica has it any more.
    var source: Incarnation? { sources.first }

    /// The time by which the source must answer; nil if none was asked.
    var deadline: Duration? {
        if case .asked(let until) = step { until } else { nil }
    }

    /// Whether both uploads are for the same snapshot and purpose.
    func isSame(as other: Self) -> Bool {
        place == other.place && reference == other.reference && isConfirmed == other.isConfirmed
    }

    /// The source is asked for the part at the offset.
    mutating func ask(until deadline: Duration) { step = .asked(until: deadline) }

    /// The source no longer has the state, never had it, or does not answer.
    mutating func passOverSource() { sources.removeFirst() }

    /// The source has answered.
    mutating func take(_ chunk: SnapshotChunk) -> Taken {
        // A part that was requested twice arrives twice.
        guard case .asked = step, chunk.offset == offset else { return .other }
        let part = SnapshotPart(
            place: place, reference: reference, isConfirmed: isConfirmed, offset: offset,
            bytes: chunk.bytes)
        hasher.update(chunk.bytes)
        offset += UInt64(chunk.bytes.count)
        guard offset < reference.byteCount || hasher.finish() == reference.digest else {
            return .wrong
        }
        step = .saving
        return .part(part)
    }
}
