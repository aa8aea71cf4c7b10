import ConfluxVocabulary

/// What catches up while the rest continues: stores that were opened later, and what was parked since it
/// was slower than the feed. Each has a position of its own (rule 4).
///
///     runner     cursor ──▶ fetched ─┐
///     runner   cursor ──▶ fetched ───┴─▶ recent ──▶ live
///
/// A *runner* goes from its cursor to the end of the feed, and takes its members along. Who joins
/// makes no runner go back, and discards nothing:
///
/// - Who is at or above a runner's cursor joins that runner, the nearest one. What it has already the
///   applier passes over, by the store's position.
/// - Others get a runner of their own; where there are as many as there may be, they wait for one.
/// - A runner that comes to another's cursor becomes one with it.
///
/// Runners deliver one commit each in turn, and only as much as ``ReplicaSettings/catchUpBytesMax``, so
/// that a commit of the feed never waits for more than that.
///
/// *Invariants*: no cursor is above `live`. Every member is in one runner, or waits. What is fetched
/// follows its runner's cursor without holes, and ends at or below `live`.
struct CatchUps: Sendable {
    struct Runner: Sendable {
        /// Everything up to this number was delivered to these.
        var cursor: SequenceNumber
        /// In the order in which they joined.
        var members: [HostingSubject]
        /// What was fetched and is not delivered.
        var fetched = CommitBuffer()
        /// The fetch under way.
        var fetch: ReplicaMachine.PendingFetch?

        /// Up to where it needs to fetch nothing.
        var end: SequenceNumber { max(cursor, fetched.last ?? .zero) }
    }

    /// The most runners. With the fetch that fills a hole, a sequencer answers as many at once.
    static let runnersMax = 3

    /// The one whose turn is next is first.
    var runners: [Runner] = []
    /// Those for which there is no runner yet, and their positions.
    private(set) var waiting: [(subject: HostingSubject, position: SequenceNumber)] = []
    /// The last commits of the feed, while something catches up. Without them a store could fall behind
    /// for ever: each answer to a fetch is older than the feed by the time that it took.
    var recent = CommitBuffer()
    /// The bytes that were delivered and not handed to the stores.
    fileprivate(set) var outstandingBytes = 0

    var isEmpty: Bool { runners.isEmpty && waiting.isEmpty }

    /// So much of what was delivered was handed to the stores.
    mutating func handOver(_ byteCount: Int) { outstandingBytes -= byteCount }

    /// It has everything up to this number.
    mutating func join(_ subject: HostingSubject, at position: SequenceNumber) {
        let nearest = runners.indices.filter { runners[$0].cursor <= position }
            .max { runners[$0].cursor < runners[$1].cursor }
        if let nearest {
            runners[nearest].members.append(subject)
        } else if runners.count < Self.runnersMax {
            runners.append(Runner(cursor: position, members: [subject]))
        } else {
            waiting.append((subject, position))
        }
    }

    /// It catches up no longer. Nobody continues for what nobody waits for.
    mutating func leave(_ subject: HostingSubject) {
        waiting.removeAll { $0.subject == subject }
        for index in runners.indices { runners[index].members.removeAll { $0 == subject } }
        runners.removeAll(where: \.members.isEmpty)
        beginNext()
    }

    /// There may be room for another runner.
    mutating func beginNext() {
        while runners.count < Self.runnersMax, !waiting.isEmpty {
            let next = waiting.removeFirst()
            join(next.subject, at: next.position)
        }
        if isEmpty { recent = CommitBuffer() }
    }

    /// The runner whose turn it is, or was, continues, or becomes one with another that it has come to.
    ///
    /// - Parameters:
    ///   - runner: The runner. It is in no list meanwhile.
    ///   - former: Where it was before.
    mutating func putBack(_ runner: Runner, from former: SequenceNumber) {
        let met = runners.indices.first {
            former <= runners[$0].cursor && runners[$0].cursor <= runner.cursor
        }
        guard let met else {
            runners.append(runner)
            return
        }
        // The lower of the two continues with both: nobody lacks anything then.
        runners[met].members += runner.members
        beginNext()
    }

    mutating func repeatAll(at now: Duration) {
        for index in runners.indices { runners[index].fetch?.deadline = now }
    }

    var nextDeadline: Duration? { runners.lazy.compactMap { $0.fetch?.deadline }.min() }
}

extension ReplicaMachine {
    /// It has everything up to this number, and gets what is behind it from here on: a store that has its
    /// snapshot, or the first local store of a bridged state.
    mutating func ready(
        _ subject: HostingSubject, through position: SequenceNumber, _ request: UInt64,
        at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard hosting[subject]?.phase.request == request else { return }
        wantFeed(at: now, into: &effects)
        guard let live else {
            // Where the feed begins is not known yet: behind its proof it is opened again, and ready again.
            hosting[subject]?.phase = .wanted
            return
        }
        catchUps.leave(subject)
        effects.append(.deliver(.begin(subject)))
        // What it has beyond the feed it passes over.
        catchUps.join(subject, at: min(position, live))
        pumpCatchUps(at: now, into: &effects)
    }

    mutating func keepForCatchUp(_ commit: Commit, byteCount: Int) {
        guard !catchUps.isEmpty else { return }
        catchUps.recent.insert(commit, byteCount: byteCount)
        catchUps.recent.shrink(to: settings.recentBytesMax)
    }

    private var hasCatchUpRoom: Bool {
        catchUps.outstandingBytes < settings.catchUpBytesMax
    }

    /// Goes on until all are where the feed is, as far as there is room and something to deliver.
    mutating func pumpCatchUps(at now: Duration, into effects: inout [ReplicaEffect]) {
        guard let live else { return }
        var idleCount = 0
        while idleCount < catchUps.runners.count {
            var runner = catchUps.runners.removeFirst()
            let former = runner.cursor
            if runner.cursor < live, hasCatchUpRoom {
                deliverNext(of: &runner, into: &effects)
            }
            if runner.cursor >= live {
                attach(runner.members, into: &effects)
                catchUps.beginNext()
                idleCount = 0
                continue
            }
            idleCount = runner.cursor > former ? 0 : idleCount + 1
            fetchNext(of: &runner, at: now, into: &effects)
            catchUps.putBack(runner, from: former)
        }
    }

    private mutating func deliverNext(
        of runner: inout CatchUps.Runner, into effects: inout [ReplicaEffect]
    ) {
        guard
            let item = runner.fetched.take(after: runner.cursor)
                ?? catchUps.recent.item(after: runner.cursor)
        else { return }
        effects.append(
            .deliver(
                .catchUp(item.commit, byteCount: item.byteCount, to: runner.members)))
        remember(item.commit.log, item.commit.last, of: item.commit.epoch)
        catchUps.outstandingBytes += item.byteCount
        runner.cursor = item.commit.last
    }

    /// The next fetch goes out when what came is delivered, and not before: so that a catch-up leaves a processor
    /// to the receipts of other stores.
    private mutating func fetchNext(
        of runner: inout CatchUps.Runner, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard phase == .joined, let live, runner.fetch == nil, runner.end < live,
            runner.fetched.isEmpty,
            catchUps.recent.item(after: runner.end) == nil
        else { return }
        runner.fetch = fetch(from: runner.end.next, at: now, into: &effects)
    }

    private mutating func attach(
        _ members: [HostingSubject], into effects: inout [ReplicaEffect]
    ) {
        for subject in members {
            effects.append(.deliver(.attach(subject)))
            guard let hosting = hosting[subject], let life = hosting.phase.life else { continue }
            effects.append(
                .deliver(.opened(request: hosting.open.request, .opened(life: life))))
        }
    }

    /// An answer to a fetch of a runner.
    ///
    /// - Returns: Whether it was one.
    mutating func caughtUp(
        _ entries: Entries, at now: Duration, into effects: inout [ReplicaEffect]
    ) -> Bool {
        let asked = catchUps.runners.firstIndex { $0.fetch?.request == entries.request }
        guard let index = asked else { return false }
        catchUps.runners[index].fetch = nil
        let end = catchUps.runners[index].end
        let floor = floor(of: entries, into: &effects)
        guard end.next >= floor else {
            let runner = catchUps.runners.remove(at: index)
            passOver(runner, floor: floor, at: now, into: &effects)
            return true
        }
        for body in entries.commits {
            guard let commit = decode(body, into: &effects) else { return true }
            let end = catchUps.runners[index].end
            guard let live, commit.last > end, commit.first <= end.next, commit.last <= live else {
                continue
            }
            catchUps.runners[index].fetched.insert(commit, byteCount: body.count)
        }
        // An answer that brought nothing on would bring nothing on again: it is waited for a while.
        if catchUps.runners[index].end == end {
            catchUps.runners[index].fetch = PendingFetch(
                request: 0, deadline: now + settings.fetchPatience)
        }
        pumpCatchUps(at: now, into: &effects)
        return true
    }

    /// The log no longer holds, or can't read, what these lack: stores begin anew with newer snapshots, and of what
    /// bridged states never see it is told.
    private mutating func passOver(
        _ runner: CatchUps.Runner, floor: SequenceNumber, at now: Duration,
        into effects: inout [ReplicaEffect]
    ) {
        let below = SequenceNumber(floor.rawValue - 1)
        for subject in runner.members {
            switch subject {
            case .store(let store): reopen(store, at: now, into: &effects)
            case .state:
                effects.append(.event(.missed(from: runner.cursor.next, through: below)))
                catchUps.join(subject, at: min(below, live ?? below))
            }
        }
        catchUps.beginNext()
        pumpCatchUps(at: now, into: &effects)
    }

    mutating func retryCatchUps(at now: Duration, into effects: inout [ReplicaEffect]) {
        for index in catchUps.runners.indices {
            guard let pending = catchUps.runners[index].fetch, now >= pending.deadline else {
                continue
            }
            catchUps.runners[index].fetch = nil
            guard pending.from > .zero else { continue }
            slowDown()
            // The same question again has the same number, so that the first answer counts.
            catchUps.runners[index].fetch = fetch(
                from: pending.from, request: pending.request, at: now, into: &effects)
        }
        pumpCatchUps(at: now, into: &effects)
    }
}
