import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// The entries of the present commit that one store gets: the part that doesn't depend on the state's type. To look
/// up such a type at run time takes longer than to apply a small action.
// Unchecked exclusivity: confined to the thread that applies, and no access lasts while another function is
// called.
class StoreRun {
    /// nil for a store that is not replicated.
    @exclusivity(unchecked) private(set) final var replica: Replica?
    /// How far the store is: its own progress, or that of all local stores together.
    @exclusivity(unchecked) private(set) final var progress: StoreProgress
    /// Chooses the random numbers of its actions.
    @exclusivity(unchecked) private(set) final var seed: UInt64
    /// The schema version by whose rules its actions are judged.
    @exclusivity(unchecked) private(set) final var version: Int
    /// Records which entry is being decoded for it.
    @exclusivity(unchecked) private(set) final var decoding: DecodingMark?
    @exclusivity(unchecked) final var failures: [NoEffect] = []
    /// About how many bytes its lane holds for them.
    @exclusivity(unchecked) final var bytes = 0
    /// Whether the store takes every entry of the present batch that concerns it.
    @exclusivity(unchecked) final var isOpen = false
    /// The last entry that it took; zero before the first.
    @exclusivity(unchecked) final var last = SequenceNumber.zero

    init(_ replica: Replica?, _ progress: StoreProgress, seed: UInt64) {
        self.replica = replica
        self.progress = progress
        self.seed = seed
        version = replica.map { Int($0.version) } ?? .max
        decoding = replica?.crashes?.decoding
    }

    /// Makes it an empty run of another store.
    final func begin(_ replica: Replica?, _ progress: StoreProgress, seed: UInt64) {
        self.replica = replica
        self.progress = progress
        self.seed = seed
        version = replica.map { Int($0.version) } ?? .max
        decoding = replica?.crashes?.decoding
        failures = []
        bytes = 0
        isOpen = false
        last = .zero
    }

    /// Whether the store still has to judge the entry. It does not if it has the entry already, is frozen, or has
    /// stopped.
    final func awaits(_ sequence: SequenceNumber) -> Bool {
        guard progress.phase != .ended, sequence > progress.delivered else { return false }
        guard replica?.isFrozen != true else { return false }
        return true
    }

    /// Begins a batch that concerns the store.
    ///
    /// - Parameter first: The number of the batch's first entry.
    final func begin(at first: SequenceNumber) {
        isOpen = awaits(first) && replica?.skips.isEmpty ?? true
    }

    /// Ends a batch: tells the replica which entry it took last.
    final func end() {
        if let replica { replica.lastChange = max(replica.lastChange, last) }
    }

    /// Whether the store applies the entry.
    @inline(__always)
    final func takes(_ place: EntryPlace) -> Bool {
        if isOpen {
            last = place.sequence
            return true
        }
        return takesChecked(place)
    }

    @inline(never)
    private final func takesChecked(_ place: EntryPlace) -> Bool {
        guard awaits(place.sequence) else { return false }
        last = place.sequence
        if replica?.skips.contains(place.sequence) == true {
            note(.skipped, place)
            return false
        }
        return true
    }

    /// Records that an entry has no effect on the store.
    final func note(_ why: EntryFailure, _ place: EntryPlace) {
        failures.append(
            NoEffect(
                sequence: place.sequence, why: why, incarnation: place.origin.incarnation))
    }
}

/// A run, and the actions that were decoded for it.
final class TypedRun<S: BridgedState>: StoreRun {
    /// nil while the run is not in use, so that it keeps no store.
    @exclusivity(unchecked) private var core: StoreCore<S>?
    // Unchecked exclusivity: as above.
    @exclusivity(unchecked) private var taken: OrderedRun<S>

    /// - Parameters:
    ///   - lane: The store's core.
    ///   - replica: The replica; nil for a store that is not replicated.
    ///   - progress: Its progress, or that of all local stores together.
    ///   - seed: Chooses the random numbers of its actions.
    init(_ lane: Lane, _ replica: Replica?, _ progress: StoreProgress, seed: UInt64) {
        core = unsafeDowncast(lane, to: StoreCore<S>.self)
        taken = OrderedRun()
        super.init(replica, progress, seed: seed)
    }

    /// Uses a run again that ``clear()`` has emptied.
    func begin(_ lane: Lane, _ replica: Replica?, _ progress: StoreProgress, seed: UInt64) {
        core = unsafeDowncast(lane, to: StoreCore<S>.self)
        begin(replica, progress, seed: seed)
    }

    /// Whether the lane has nothing to do for it.
    var isEmpty: Bool { taken.count == 0 && failures.isEmpty }

    /// Appends an action that the store takes.
    func append(_ action: S.Action, _ place: EntryPlace, payloadBytes: Int) {
        bytes += payloadBytes + StoreProgress.actionBytes
        taken.append(action, context(of: place))
    }

    /// Decodes and appends entries of one row, which the store takes all: most entries. The types are looked up
    /// once for all of them, and no reference is counted for one.
    ///
    /// - Parameters:
    ///   - entries: The entries of a batch.
    ///   - start: The position of the first entry.
    ///   - row: The entries' row.
    ///   - rows: How many rows the batch has.
    ///   - quick: Decodes an action.
    ///   - payloadBytesMax: The most bytes of a payload.
    ///   - place: The place of the first entry; moved to the one behind the last that was appended.
    /// - Returns: The position of the first entry that was not appended: the end, or it needs more than this.
    func append(
        _ entries: UnsafeBufferPointer<UInt8>, from start: Int, row: Int, of rows: Int,
        by quick: QuickCoding<S.Action>, payloadBytesMax: Int, at place: inout EntryPlace
    ) -> Int {
        let former = taken.count
        var position = start
        var isAtEnd = false
        while !isAtEnd {
            taken.appendEach { actions, contexts, room in
                var (action, context) = (actions, contexts)
                let end = contexts + room
                while context < end {
                    guard let head = EntryHead(entries, at: position, rows: rows),
                        head.target == row,
                        head.upper - head.lower <= payloadBytesMax,
                        quick.read(
                            UnsafeBufferPointer(rebasing: entries[head.lower..<head.upper]),
                            into: action)
                    else {
                        isAtEnd = true
                        break
                    }
                    context.initialize(to: self.context(of: place))
                    action += 1
                    context += 1
                    place.advance()
                    position = head.upper
                }
                return context - contexts
            }
        }
        noteTaken(since: former, payloadBytes: position - start)
        return position
    }

    /// Does the same through `Codable`, on several threads at a time. Does nothing if the row has too few entries
    /// here.
    func append(
        _ entries: UnsafeBufferPointer<UInt8>, from start: Int, row: Int, of rows: Int,
        by coder: ActionCoder<S.Action>, as coding: PayloadCoding, at place: inout EntryPlace
    ) -> Int {
        var payloads: [Range<Int>] = []
        var position = start
        while let head = EntryHead(entries, at: position, rows: rows), head.target == row {
            payloads.append(head.lower..<head.upper)
            position = head.upper
        }
        guard payloads.count > ActionCoder<S.Action>.shareSize else { return start }
        let former = taken.count
        taken.appendEach(reserving: payloads.count) { actions, contexts, _ in
            let count = coder.decode(payloads, of: entries, as: coding, into: actions)
            for index in 0..<count {
                (contexts + index).initialize(to: context(of: place))
                place.advance()
            }
            return count
        }
        let count = taken.count - former
        position = count == 0 ? start : payloads[count - 1].upperBound
        noteTaken(since: former, payloadBytes: position - start)
        return position
    }

    private func noteTaken(since former: Int, payloadBytes: Int) {
        let count = taken.count - former
        guard count > 0 else { return }
        last = taken.context(at: taken.count - 1).sequence
        bytes += payloadBytes + count * StoreProgress.actionBytes
    }

    @inline(__always)
    private func context(of place: EntryPlace) -> ActionContext {
        ActionContext(
            sequence: place.sequence, timestamp: place.timestamp, origin: place.origin,
            seed: seed, schemaVersion: version)
    }

    /// Gives the actions to the store's lane.
    ///
    /// - Parameters:
    ///   - through: The number up to which the log has nothing more for the store, and the present term.
    ///   - serial: The number under which the lane reports.
    ///   - reports: Gets the report.
    func give(through: StoreVersion, _ serial: UInt64, to reports: LaneReports) {
        present.deliver(taken, through: through, completion: report(serial, to: reports))
    }

    /// The same for a store that applies them together with other stores.
    func join(through: StoreVersion, _ serial: UInt64, to reports: LaneReports) -> JointRun {
        present.joint(taken, through: through, completion: report(serial, to: reports))
    }

    var canJoin: Bool { present.canJoin }

    private var present: StoreCore<S> {
        guard let core else { preconditionFailure("the run of no store") }
        return core
    }

    private func report(
        _ serial: UInt64, to reports: LaneReports
    ) -> @Sendable (RunReport) -> Void {
        let (taken, failures) = (taken, failures)
        taken.payloadBytes = bytes - taken.count * StoreProgress.actionBytes
        return { report in
            guard !report.refusals.isEmpty || !failures.isEmpty else {
                return reports.add(.ran(serial: serial, []))
            }
            let refused = report.refusals.map { refusal in
                let context = taken.context(at: refusal.index)
                return NoEffect(
                    sequence: context.sequence, why: .refused(refusal.error),
                    incarnation: context.origin?.incarnation ?? .none)
            }
            reports.add(
                .ran(
                    serial: serial, (failures + refused).sorted { $0.sequence < $1.sequence }))
        }
    }

    /// Empties it for the next use, if the lane is done with its actions and their memory is worth keeping.
    ///
    /// - Returns: Whether it may be used again.
    func clear() -> Bool {
        guard taken.isFinished, isKnownUniquelyReferenced(&taken), taken.isWorthKeeping else {
            return false
        }
        taken.clear()
        core = nil
        begin(nil, progress, seed: seed)
        return true
    }
}
