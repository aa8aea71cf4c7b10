import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Reads the past of stores from the log, on connections of its own: see
/// [decision 64](../../../docs/decisions/0064-the-past-is-read-from-the-log.md).
///
/// Each read connects as an observer, which makes no entry. It begins with the last state that the log has before what
/// is wanted, and gets the entries after it in commits. While one is applied, a bounded number of bytes waits
/// (`ReplicaSettings.deliveryBytesMax`).
package struct PastReader: Sendable {
    private let address: String
    let settings: NodeSettings

    /// - Parameters:
    ///   - address: The addresses of the sequencers, separated by commas.
    ///   - settings: The settings of the node that reads.
    package init(of address: String, _ settings: NodeSettings) {
        self.address = address
        self.settings = settings.ofReader
    }

    /// The states of a store at some numbers.
    ///
    /// - Parameters:
    ///   - state: The store's state.
    ///   - store: The store.
    ///   - marks: The numbers, ascending.
    ///   - without: An action that is left out: the states are as if it had never been ordered.
    ///   - made: States that were made before. What is nearest to the first number spares reading.
    ///   - limit: How long it may take; nil for no limit.
    /// - Returns: The states, in the order of the numbers.
    /// - Throws: ``PastError``.
    package func states(
        of state: ReplayedState, _ store: StoreName, at marks: [SequenceNumber],
        without: SequenceNumber? = nil, near made: [PastState] = [], within limit: Duration? = nil
    ) async throws(PastError) -> [PastState] {
        guard let first = marks.first, let last = marks.last else { return [] }
        let wanted = without.map { min(first, SequenceNumber(max(1, $0.rawValue) - 1)) } ?? first
        let run = try await read(state, store, within: limit) { (range) throws(PastError) in
            guard last <= range.newest else { throw .aboveNewest(last, range.newest) }
            if let without, without > last { throw .notAnAction(without, for: store) }
            guard let start = range.starts.last(where: { $0.known <= wanted }) else {
                throw .belowFloor(wanted, range.floor, of: store)
            }
            let nearest = range.start(in: made, upTo: first, without: without)
            return (
                nearest.flatMap { $0.known > start.known ? $0 : nil } ?? start,
                PastRun.Goal(
                    store: store, life: range.life, log: range.log, marks: marks, without: without)
            )
        }
        return run.states
    }

    /// Actions for a store, with what the store made of them.
    ///
    /// - Parameters:
    ///   - state: The store's state.
    ///   - store: The store.
    ///   - after: The number behind which they are; nil for the last ones.
    ///   - before: The number before which they are; nil for the log's end. One of the two is nil.
    ///   - limit: How many there are at most.
    ///   - time: How long it may take; nil for no limit.
    /// - Returns: The actions, and which states the log has.
    /// - Throws: ``PastError``.
    package func entries(
        of state: ReplayedState, _ store: StoreName, after: SequenceNumber? = nil,
        before: SequenceNumber? = nil, limit: Int, within time: Duration? = nil
    ) async throws(PastError) -> PastEntries {
        let begun = Moment.now.monotonic
        var earlier = 0
        while true {
            let left = time.map { max(.zero, $0 - (Moment.now.monotonic - begun)) }
            let run = try await read(state, store, within: left) { (range) throws(PastError) in
                let selection: PastEntries.Selection
                var known: SequenceNumber
                if let after {
                    known = max(after, range.floor)
                    selection = .after(known, limit: limit, last: range.newest)
                    guard after <= range.newest else { throw .aboveNewest(after, range.newest) }
                } else {
                    let end = before.map { SequenceNumber(max(1, $0.rawValue) - 1) } ?? range.newest
                    let last = min(end, range.newest)
                    known = last
                    selection = .through(last, limit: limit)
                }
                let usable = range.starts.filter { $0.known <= known }
                guard !usable.isEmpty else { throw .belowFloor(known, range.floor, of: store) }
                let start = usable[max(0, usable.count - 1 - earlier)]
                return (
                    start,
                    PastRun.Goal(
                        store: store, life: range.life, log: range.log, marks: [],
                        entries: selection)
                )
            }
            let isEarliest = run.start.known <= run.range.floor
            guard after != nil || run.count >= limit || isEarliest else {
                earlier += 1
                continue
            }
            return PastEntries(
                entries: run.entries, floor: run.range.floor, newest: run.range.newest)
        }
    }

    // MARK: Reading

    /// What came of one read.
    private struct Outcome: Sendable {
        var states: [PastState] = []
        var entries: [PastEntries.Entry] = []
        var count = 0
        var range: PastRange
        var start: PastRange.Start
        var missingRise: HistoryRise?
    }

    /// Reads until everything is there. A rise of the schema version has to be known from its beginning on. So whenever an
    /// unknown one is found, it begins anew.
    private func read(
        _ state: ReplayedState, _ store: StoreName, within limit: Duration?,
        _ choose: (PastRange) throws(PastError) -> (PastRange.Start, PastRun.Goal)
    ) async throws(PastError) -> Outcome {
        let begun = Moment.now.monotonic
        var rises: [HistoryRise] = []
        while true {
            let left = limit.map { max(.zero, $0 - (Moment.now.monotonic - begun)) }
            let outcome = try await readOnce(state, store, knowing: rises, within: left, choose)
            guard let rise = outcome.missingRise else { return outcome }
            rises.append(rise)
        }
    }

    private func readOnce(
        _ state: ReplayedState, _ store: StoreName, knowing rises: [HistoryRise],
        within limit: Duration?,
        _ choose: (PastRange) throws(PastError) -> (PastRange.Start, PastRun.Goal)
    ) async throws(PastError) -> Outcome {
        try await withReader(within: limit) { (reader, sink) throws(PastError) in
            try await readOnce(state, store, knowing: rises, on: reader, into: sink, choose)
        }
    }

    /// Connects for as long as the work takes.
    ///
    /// - Parameters:
    ///   - limit: How long it may take; nil for no limit.
    ///   - work: Gets the node that reads, and what takes its commits.
    /// - Returns: What the work returns.
    /// - Throws: ``PastError``.
    func withReader<Value: Sendable>(
        within limit: Duration?,
        _ work: (NodeCore, PastSink) async throws(PastError) -> Value
    ) async throws(PastError) -> Value {
        let sink = PastSink()
        let reader: NodeCore
        do throws(NodeError) {
            reader = try NodeCore(
                address: address, settings: settings, role: .observer, scope: Scope(),
                tap: { sink.take($0) })
        } catch {
            throw PastError(error)
        }
        // Whatever is under way ends with the node.
        let end: @Sendable (PastError) -> Void = { [weak reader] error in
            sink.end(error)
            reader?.leave(timeout: .zero)
        }
        defer { reader.leave(timeout: .zero) }
        let deadline = limit?.whenOver { end(.late(limit)) }
        defer { deadline?.forget() }
        let watching = Task { [events = reader.eventStream] in
            for await event in events { sink.note(event) }
        }
        defer { watching.cancel() }
        let result = await withTaskCancellationHandler {
            do throws(PastError) {
                return Result<Value, PastError>.success(try await work(reader, sink))
            } catch {
                // What ended it says more than what failed because of that.
                return .failure(sink.error ?? error)
            }
        } onCancel: {
            end(.cancelled)
        }
        return try result.get()
    }

    private func readOnce(
        _ state: ReplayedState, _ store: StoreName, knowing rises: [HistoryRise],
        on reader: NodeCore, into sink: PastSink,
        _ choose: (PastRange) throws(PastError) -> (PastRange.Start, PastRun.Goal)
    ) async throws(PastError) -> Outcome {
        let range = try await PastRange(of: store, on: reader, patience: settings.connectTimeout)
        let (start, goal) = try choose(range)
        // Sendable: the thread that applies has it alone from `begin` to the end of the run.
        nonisolated(unsafe) let run = try PastRun(
            goal, of: state, from: try await start.load(store, range.life, on: reader), start.epoch,
            first: start.first, skipping: range.skipped, rises)
        if !run.isDone {
            sink.begin(run, through: goal.last)
            reader.follow(from: run.first)
            if let error = await sink.ended() { throw error }
        }
        return Outcome(
            states: run.states,
            entries: run.entries?.entries(state, keysOf: range.keys) ?? [],
            count: run.entries?.count ?? 0, range: range, start: start,
            missingRise: run.missingRise)
    }
}
