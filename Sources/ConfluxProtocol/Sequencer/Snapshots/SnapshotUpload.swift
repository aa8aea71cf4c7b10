import ConfluxHashing
import ConfluxVocabulary

/// A snapshot that is uploaded from replicas to the log, part by part. Rule 19 is implemented here.
///
///     waiting ──▶ asked ── part ──▶ saving ── saved ──▶ asked … ──▶ whole
///                  │ no answer, a short part, or gone: the next source, at the same offset
///
/// A part is requested once the part before it is in the log, so that at most one part of each
/// upload is in memory. Replicas with the same digest have the same bytes, so any of them can
/// continue where another one ended. The parts are hashed as they arrive. If the whole does not
/// have the digest in the end, the upload begins anew: without its source if that gave all parts,
/// and otherwise with it alone, since any of those that gave some may have lied.
///
/// A part has as many bytes as were asked for, and a source has a bounded time for each. So the
/// time that a source may take for a snapshot follows the snapshot's size.
struct SnapshotUpload: Sendable {
    let place: SnapshotPlace
    let reference: SnapshotReference
    /// The bytes of the entries that concerned the store up to the point.
    let load: UInt64
    /// Whether it becomes the state that openers begin with.
    let isConfirmed: Bool
    /// The replica that is asked for the next part.
    private(set) var source: Source
    /// The other replicas that have the state, without those that failed to send it.
    private var others: ArraySlice<Source>
    /// The replicas that gave what has arrived.
    private var givers: Set<Incarnation> = []
    /// How many bytes have arrived: they are in the log, or on their way to it.
    private(set) var offset: UInt64 = 0
    private var hasher = DigestHasher()
    private(set) var step = Step.waiting

    /// A replica that has the state.
    struct Source: Sendable, Equatable {
        let incarnation: Incarnation
        /// Whose share of the uploads it counts for.
        let sharer: Sharer
    }

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
        /// Nothing of this state: the replica no longer has it, or never had it.
        case gone
        /// Fewer bytes than were asked for.
        case short
        /// The last part, but the whole does not have the digest. The upload begins anew. The source
        /// is to blame if it gave all of it.
        case wrong(isOneGiver: Bool)
    }

    /// - Returns: nil if no replica has the state.
    init?(
        _ reference: SnapshotReference, of round: Votes.Round, from sources: [Source],
        isConfirmed: Bool
    ) {
        guard let source = sources.first else { return nil }
        place = round.place
        load = round.load
        self.source = source
        others = sources.dropFirst()
        self.reference = reference
        self.isConfirmed = isConfirmed
    }

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
    ///
    /// - Returns: Whether there is another source.
    mutating func passOverSource() -> Bool {
        guard let next = others.popFirst() else { return false }
        source = next
        return true
    }

    /// The source has answered.
    ///
    /// - Parameters:
    ///   - chunk: The answer.
    ///   - partBytesMax: How many bytes were asked for.
    /// - Returns: What kind of part it is.
    mutating func take(_ chunk: SnapshotChunk, partBytesMax: Int) -> Taken {
        guard case .asked = step else { return .other }
        guard chunk.byteCount == reference.byteCount, !chunk.bytes.isEmpty else { return .gone }
        // A part that was requested twice arrives twice.
        guard chunk.offset == offset else { return .other }
        let left = Int(clamping: reference.byteCount - offset)
        guard chunk.bytes.count == min(partBytesMax, left) else { return .short }
        givers.insert(source.incarnation)
        let part = SnapshotPart(
            place: place, reference: reference, isConfirmed: isConfirmed, offset: offset,
            bytes: chunk.bytes)
        hasher.update(chunk.bytes)
        offset += UInt64(chunk.bytes.count)
        guard offset < reference.byteCount || hasher.finish() == reference.digest else {
            defer { beginAnew() }
            return .wrong(isOneGiver: givers.count == 1)
        }
        step = .saving
        return .part(part)
    }

    private mutating func beginAnew() {
        givers = []
        offset = 0
        hasher = DigestHasher()
    }
}
