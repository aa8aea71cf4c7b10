import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// The entries of the present commit that one store gets.
// Unchecked exclusivity: confined to the thread that applies, and no access lasts while another function is
// called.
final class StoreRun<S: BridgedState> {
    let core: StoreCore<S>
    /// nil for a store that is not replicated.
    let replica: Replica?
    /// How far the store is: its own progress, or that of all local stores together.
    let progress: StoreProgress
    /// Chooses the random numbers of its actions.
    let seed: UInt64
    /// Records which entry is being decoded for it.
    let decoding: DecodingMark?
    @exclusivity(unchecked) var taken: OrderedRun<S>
    @exclusivity(unchecked) var failures: [NoEffect] = []
    /// About how many bytes its lane holds for them.
    @exclusivity(unchecked) var bytes = 0
    /// Whether the store takes every entry of the present batch that concerns it.
    @exclusivity(unchecked) var isOpen = false
    /// The last entry that it took; zero before the first.
    @exclusivity(unchecked) var last = SequenceNumber.zero

    init(
        _ core: StoreCore<S>, replica: Replica?, _ progress: StoreProgress, seed: UInt64,
        _ taken: OrderedRun<S>
    ) {
        self.core = core
        self.replica = replica
        self.progress = progress
        self.seed = seed
        self.taken = taken
        decoding = replica?.crashes?.decoding
    }

    /// Whether the store still has to judge the entry. It does not if it has the entry already, is frozen, or has
    /// stopped.
    func awaits(_ sequence: SequenceNumber) -> Bool {
        guard progress.phase != .ended, sequence > progress.delivered else { return false }
        guard replica?.isFrozen != true else { return false }
        return true
    }

    /// Begins a batch that concerns the store.
    ///
    /// - Parameter first: The number of the batch's first entry.
    func begin(at first: SequenceNumber) {
        isOpen = awaits(first) && replica?.skips.isEmpty ?? true
    }

    /// Ends a batch: tells the replica which entry it took last.
    func end() {
        if let replica, last != .zero { replica.lastChange = last }
    }

    /// Whether the store applies the entry.
    @inline(__always)
    func takes(_ place: EntryPlace) -> Bool {
        if isOpen {
            last = place.sequence
            return true
        }
        return takesChecked(place)
    }

    @inline(never)
    private func takesChecked(_ place: EntryPlace) -> Bool {
        guard awaits(place.sequence) else { return false }
        last = place.sequence
        if replica?.skips.contains(place.sequence) == true {
            note(.skipped, place)
            return false
        }
        return true
    }

    /// Records that an entry has no effect on the store.
    func note(_ why: EntryFailure, _ place: EntryPlace) {
        failures.append(
            NoEffect(
                sequence: place.sequence, why: why, incarnation: place.origin.incarnation))
    }

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
            seed: seed)
    }
}
