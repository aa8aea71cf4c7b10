import ConfluxVocabulary

/// A snapshot on its way from replicas to the log, part by part: the one place of rule 19.
///
///     waiting ──▶ asked ── part ──▶ saving ── saved ──▶ asked … ──▶ whole
///                  │ no answer, or gone: the next source, at the same place
///
/// A part is asked for once the one before it is in the log, so that one of each upload is in memory
/// at most. Replicas with one digest have the same bytes, so that any of them can continue where another
/// ended; what came is hashed on its way, and what does not have the digest in the end is given up.
struct SnapshotUpload: Sendable {
    let place: SnapshotPlace
    let reference: SnapshotReference
    /// What concerned the store up to the point, in bytes.
    let load: UInt64
    /// Whether it becomes what openers begin with.
    let isConfirmed: Bool
    /// Who has it, and was not asked in vain.
    private var sources: [Incarnation]
    /// How many bytes came and are in the log, or on their way to it.
    private(set) var offset: UInt64 = 0
    private var hasher = DigestHasher()
    private(set) var step = Step.waiting

    enum Step: Sendable, Equatable {
        /// For its turn.
        case waiting
        /// The first source was asked, and has until then.
        case asked(until: Duration)
        /// The log is saving a part.
        case saving
    }

    /// What a part that came is.
    enum Taken: Sendable {
        /// The next one.
        case part(SnapshotPart)
        /// Not the one that was asked for.
        case other
        /// The last one, and the whole does not have the digest.
        case wrong
    }

    init(_ reference: SnapshotReference, of round: Votes.Round, isConfirmed: Bool) {
        place = round.place
        load = round.load
        sources = round.sources(of: reference.digest)
        self.reference = reference
        self.isConfirmed = isConfirmed
    }

    /// Who is asked for the next part; nil if nobody has it any more.
    var source: Incarnation? { sources.first }

    /// Until when the source has time; nil if none was asked.
    var deadline: Duration? {
        if case .asked(let until) = step { until } else { nil }
    }

    /// Whether it is for what another one is for.
    func isSame(as other: Self) -> Bool {
        place == other.place && reference == other.reference && isConfirmed == other.isConfirmed
    }

    /// The source is asked for what comes behind the offset.
    mutating func ask(until deadline: Duration) { step = .asked(until: deadline) }

    /// The source has it no longer, never had it, or does not answer.
    mutating func passOverSource() { sources.removeFirst() }

    /// The source has answered.
    mutating func take(_ chunk: SnapshotChunk) -> Taken {
        // What was asked for twice comes twice.
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
