import Conflux
import ConfluxProtocol

/// The progress of one store here, or of the local stores of a bridged state together, and the notices that wait
/// for it.
///
///     empty ──▶ ready ──▶ catchingUp ──▶ attached ──▶ ended
///                 ▲           │ its lane is too slow │
///                 └─ parked ◀─┴──────────────────────┘
///
/// *Invariants*:
/// - An entry reaches the store if and only if its number is above ``delivered`` (rule 30).
/// - Its *position* is below the first run that its lane has not reported. If there is none, the position is
///   ``delivered``; while the store is attached, it is the last number that the whole node was given.
/// - Runs that its lane has not reported have at most `Applier.openBytesMax` bytes and one commit. *At the
///   bound* the store is parked: it gets nothing until its lane is empty, and then catches up from its position.
/// - Notices are given in the order in which they began to wait.
///
/// Confined to the thread that applies.
final class StoreProgress {
    enum Phase {
        /// It has no state yet, or none that counts: its position is unknown.
        case empty
        /// It was given everything up to ``delivered``, and gets nothing until the machine says so.
        case ready
        case catchingUp
        case attached
        /// The same as `ready`, but its lane has not yet reached ``delivered``.
        case parked
        /// It takes nothing above ``delivered``, since it stopped or its life is over.
        case ended
    }

    /// A notice that waits until the store has reached a number.
    struct Waiting {
        enum Goal {
            case outcome(PendingOutcome)
            case opened(request: UInt64, OpenOutcome)
            case dropped
        }

        var sequence: SequenceNumber
        var goal: Goal
    }

    /// The part of a commit that the lanes were given and have not reported.
    private struct OpenRun {
        let serial: UInt64
        /// The number before the commit.
        let before: SequenceNumber
        let laneCount: Int
        var leftCount: Int
        /// For several lanes: the entries without effect, and in how many lanes they had none.
        var failures: [SequenceNumber: (failure: NoEffect, count: Int)] = [:]
        let bytes: Int
    }

    /// About how many bytes a run keeps of an action, besides its payload.
    static let actionBytes = 128

    let subject: HostingSubject
    let reports: LaneReports
    var phase = Phase.empty
    var delivered = SequenceNumber.zero
    /// The request of its last snapshot; zero for local stores, and before the first snapshot of a history.
    private(set) var request: UInt64 = 0
    /// Whether its snapshot is not in the state yet, so that its position is unknown. It takes entries nevertheless.
    private(set) var awaitsState = false
    /// The present life; zero until it is known, and always for local stores.
    var life = SequenceNumber.zero
    /// Why it stopped, and the entry that it did not apply, if an entry was the reason.
    var stop: (at: SequenceNumber?, message: String)?
    var effects: NoEffects
    /// The numbers at which no entry was for it: it was frozen (rule 37), or there was no local store.
    private var absences = RangeSet<UInt64>()
    /// The number from which on no entry is for it; nil while entries are for it.
    private var awaySince: SequenceNumber?
    private var openRuns: [OpenRun] = []
    private(set) var openBytes = 0
    private var nextSerial: UInt64 = 0
    private(set) var waiting: [Waiting] = []
    /// The notices before this index were given.
    private var waitingHead = 0

    init(
        _ subject: HostingSubject, refusalBytesMax: Int,
        notify: @escaping @Sendable (HostingSubject) -> Void
    ) {
        self.subject = subject
        reports = LaneReports { notify(subject) }
        effects = NoEffects(bytesMax: refusalBytesMax)
    }

    // MARK: Position

    /// The number up to which everything that concerns it is applied; nil while it is unknown. `live` is the last
    /// number that the whole node was given.
    func position(_ live: SequenceNumber) -> SequenceNumber? {
        guard phase != .empty, !awaitsState else { return nil }
        if let first = openRuns.first { return first.before }
        return phase == .attached ? max(delivered, live) : delivered
    }

    /// Whether nothing up to this number has to be waited for.
    func hasReached(_ sequence: SequenceNumber, _ live: SequenceNumber) -> Bool {
        // Runs that its lane got before it ended are still applied.
        if phase == .ended, sequence > delivered { return openRuns.isEmpty }
        return position(live).map { $0 >= sequence } ?? false
    }

    /// The effect of an entry that it has reached.
    func effect(of sequence: SequenceNumber) -> Effect {
        if sequence <= life { return .nobody }
        if phase == .ended, sequence > delivered {
            return stop.map { .stopped(at: $0.at, message: $0.message) } ?? .nobody
        }
        if let awaySince, sequence >= awaySince { return .nobody }
        if absences.contains(sequence.rawValue) { return .nobody }
        return effects.effect(of: sequence)
    }

    /// Whether all of these entries were for it and had their effect. The same as ``effect(of:)`` for each, but faster.
    func isPlain(_ first: SequenceNumber, _ last: SequenceNumber) -> Bool {
        (phase != .ended || last <= delivered) && first > life && !wasAway(first, last)
            && effects.isPlain(first, last)
    }

    // MARK: Absences

    /// The most absences that are kept. *At the bound* the oldest is forgotten. The effects of entries up to its end
    /// are unknown then.
    static let absencesMax = 1_024

    /// Whether no entry is for it now.
    var isAway: Bool { awaySince != nil }

    /// Whether no entry from a number on is for it, as far as it knows: it is a bridge without stores, or it is frozen.
    func isAway(from first: SequenceNumber) -> Bool {
        phase != .ended && awaySince.map { $0 <= first } ?? false
    }

    /// Whether one of these entries was not for it.
    private func wasAway(_ first: SequenceNumber, _ last: SequenceNumber) -> Bool {
        if let awaySince, last >= awaySince { return true }
        return !absences.isEmpty
            && !absences.isDisjoint(RangeSet(first.rawValue..<last.rawValue + 1))
    }

    /// From this number on, no entry is for it.
    func leave(at sequence: SequenceNumber) { awaySince = awaySince ?? sequence }

    /// From this number on, entries are for it again.
    func comeBack(at sequence: SequenceNumber) {
        guard let since = awaySince else { return }
        awaySince = nil
        absences.insert(contentsOf: since.rawValue..<max(since, sequence).rawValue)
        if absences.ranges.count > Self.absencesMax, let oldest = absences.ranges.first {
            absences.remove(contentsOf: oldest)
            effects.forget(through: SequenceNumber(oldest.upperBound))
        }
    }

    /// Entries up to this number were not seen here. From there on, entries are for it.
    func jump(through sequence: SequenceNumber) {
        awaySince = nil
        effects.jump(through: sequence)
    }

    // MARK: The lane's work

    var hasOpenRuns: Bool { !openRuns.isEmpty }

    /// Notes that its lanes are about to get their runs of a commit.
    ///
    /// - Returns: The serial number under which they report.
    func beginRun(of commit: ClosedRange<SequenceNumber>, lanes: Int, bytes: Int) -> UInt64 {
        nextSerial += 1
        openRuns.append(
            OpenRun(
                serial: nextSerial, before: SequenceNumber(commit.lowerBound.rawValue - 1),
                laneCount: lanes, leftCount: lanes, bytes: bytes))
        openBytes += bytes
        reports.expect()
        return nextSerial
    }

    /// Takes a lane's report. A report on a lost history is ignored.
    func ran(_ serial: UInt64, _ failures: [NoEffect], own: [Incarnation]) {
        guard let index = openRuns.firstIndex(where: { $0.serial == serial }) else { return }
        openRuns[index].leftCount -= 1
        if openRuns[index].laneCount == 1 {
            if !failures.isEmpty { effects.add(failures, own: own) }
        } else {
            for failure in failures {
                openRuns[index].failures[failure.sequence, default: (failure, 0)].count += 1
            }
        }
        guard openRuns[index].leftCount == 0 else { return }
        let run = openRuns.remove(at: index)
        openBytes -= run.bytes
        // For several stores, an entry had no effect if it had none on any of them.
        guard !run.failures.isEmpty else { return }
        effects.add(
            run.failures.values.filter { $0.count == run.laneCount }.map(\.failure)
                .sorted { $0.sequence < $1.sequence }, own: own)
    }

    // MARK: Beginning and ending

    /// Discards its state, which is wrong. It gets no more entries until it begins anew.
    func letGo() {
        phase = .empty
        stop = nil
        awaitsState = false
    }

    /// Begins with a snapshot, in this life.
    func begin(life: SequenceNumber, at sequence: SequenceNumber, request: UInt64) {
        if life != self.life { forget() }
        self.life = life
        self.request = request
        phase = .empty
        awaitsState = true
        stop = nil
        delivered = sequence
        // Missing reports concern the former state.
        dropRuns()
        jump(through: sequence)
    }

    /// Notes that its snapshot is in the state.
    func gotState() { awaitsState = false }

    /// Ends it: it gets no state.
    func stopWithoutState(_ message: String) {
        stop = (nil, message)
        delivered = .zero
        phase = .ended
        awaitsState = false
        dropRuns()
    }

    private func dropRuns() {
        openRuns = []
        openBytes = 0
    }

    /// Forgets everything about entries: the history was lost, or another life begins, so the same numbers may mean
    /// other entries.
    func forget() {
        effects = effects.emptied
        dropRuns()
        request = 0
        awaitsState = false
        absences = RangeSet()
        awaySince = nil
        delivered = .zero
        stop = nil
        phase = .empty
    }

    // MARK: Notices

    var isAwaited: Bool { waitingHead < waiting.count }

    func wait(_ item: Waiting) { waiting.append(item) }

    /// Takes the next notice, if the store has reached its number.
    func takeReached(_ live: SequenceNumber) -> Waiting? {
        guard waitingHead < waiting.count, hasReached(waiting[waitingHead].sequence, live) else {
            return nil
        }
        return takeNext()
    }

    /// Takes the waiting outcomes. The other notices stay.
    func takeOutcomes() -> [PendingOutcome] {
        var outcomes: [PendingOutcome] = []
        var rest: [Waiting] = []
        for item in waiting[waitingHead...] {
            if case .outcome(let outcome) = item.goal {
                outcomes.append(outcome)
            } else {
                rest.append(item)
            }
        }
        waiting = rest
        waitingHead = 0
        return outcomes
    }

    /// Takes the next notice, whatever its number.
    func takeNext() -> Waiting? {
        guard waitingHead < waiting.count else { return nil }
        defer {
            waitingHead += 1
            if waitingHead == waiting.count || waitingHead > 256 && waitingHead * 2 > waiting.count
            {
                waiting.removeFirst(waitingHead)
                waitingHead = 0
            }
        }
        return waiting[waitingHead]
    }
}

extension NoEffects {
    /// An empty one with the same bound.
    var emptied: NoEffects { NoEffects(bytesMax: bytesMax) }
}
