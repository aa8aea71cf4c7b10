import ConfluxVocabulary

/// What catches up while the rest continues: stores that were opened later, and stores that were parked because they
/// were slower than the feed. Each has a position of its own (rule 4).
///
///     runner     cursor ──▶ fetched ─┐
///     runner   cursor ──▶ fetched ───┴─▶ recent ──▶ live
///
/// A *runner* goes from its cursor to the end of the feed, and takes its members along. When a store joins, no runner
/// goes back, and none discards anything:
///
/// - A store at or above the cursor of a runner joins that runner, or the nearest of several. The applier skips what
///   the store has already, by the store's position.
/// - Any other store gets a runner of its own. If there are as many runners as there may be, it waits for one.
/// - A runner that reaches another's cursor merges with that runner.
///
/// Runners take turns, and deliver one commit in each turn. Together they deliver no more than
/// ``ReplicaSettings/catchUpBytesMax``, so that a commit of the feed never waits for more than that.
///
/// *Invariants*: no cursor is above `live`. Every member is in one runner, or waits. What a runner has fetched
/// follows its cursor without holes, and ends at or below `live`.
struct CatchUps: Sendable {
    struct Runner: Sendable {
        /// Everything up to this number was delivered to the members.
        var cursor: SequenceNumber
        /// In the order in which they joined.
        var members: [HostingSubject]
        /// Commits that were fetched and not yet delivered.
        var fetched = CommitBuffer()
        /// The fetch under way.
        var fetch: ReplicaMachine.PendingFetch?

        /// The number up to which it needs no further fetch.
        var end: SequenceNumber { max(cursor, fetched.last ?? .zero) }
    }

    /// The most runners. Each has one fetch under way at most, beside the fetch that fills a hole.
    static let runnersMax = 3

    /// The runners. The one whose turn is next comes first.
    var runners: [Runner] = []
    /// Subjects for which there is no runner yet, with their positions.
    private(set) var waiting: [(subject: HostingSubject, position: SequenceNumber)] = []
    /// The last commits of the feed, kept while something catches up. Without them a store could lag behind for ever:
    /// each answer to a fetch is older than the feed by the time that it took.
    var recent = CommitBuffer()
    /// The bytes that were delivered and not yet handed to the stores.
    fileprivate(set) var outstandingBytes = 0

    var isEmpty: Bool { runners.isEmpty && waiting.isEmpty }

    /// Notes that this many of the delivered bytes were handed to the stores.
    mutating func handOver(_ byteCount: Int) { outstandingBytes -= byteCount }

    /// Adds a subject that has everything up to a number.
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

    /// Removes a subject. A runner without members ends.
    mutating func leave(_ subject: HostingSubject) {
        waiting.removeAll { $0.subject == subject }
        for index in runners.indices { runners[index].members.removeAll { $0 == subject } }
        runners.removeAll(where: \.members.isEmpty)
        beginNext()
    }

    func checkInvariants(below live: SequenceNumber?) throws(BrokenInvariant) {
        try recent.checkInvariants()
        try hold(runners.count <= Self.runnersMax, "\(runners.count) runners")
        try hold(
            waiting.isEmpty || runners.count == Self.runnersMax,
            "subjects wait, and a runner is free")
        try hold(outstandingBytes >= 0, "\(outstandingBytes) bytes are under way")
        let members = runners.flatMap(\.members) + waiting.map(\.subject)
        try hold(Set(members).count == members.count, "a subject is in two places: \(members)")
        for runner in runners {
            try runner.fetched.checkInvariants()
            try hold(!runner.members.isEmpty, "a runner has no members")
            try hold(
                runner.end <= live ?? .zero,
                "a runner is at \(runner.end), and the feed at \(live?.description ?? "no number")")
        }
    }

    /// Gives runners to waiting subjects, as long as there is room.
    mutating func beginNext() {
        while runners.count < Self.runnersMax, !waiting.isEmpty {
            let next = waiting.removeFirst()
            join(next.subject, at: next.position)
        }
        if isEmpty { recent = CommitBuffer() }
    }

    /// Puts a runner back after its turn, or merges it with a runner whose cursor it has reached.
    ///
    /// - Parameters:
    ///   - runner: The runner. During its turn it is in no list.
    ///   - former: Its cursor before the turn.
    mutating func putBack(_ runner: Runner, from former: SequenceNumber) {
        let met = runners.indices.first {
            former <= runners[$0].cursor && runners[$0].cursor <= runner.cursor
        }
        guard let met else {
            runners.append(runner)
            return
        }
        // The lower of the two continues with the members of both, so that nobody misses anything.
        runners[met].members += runner.members
        beginNext()
    }

    mutating func replace(fetch request: UInt64, by fetch: ReplicaMachine.PendingFetch) {
        for index in runners.indices where runners[index].fetch?.request == request {
            runners[index].fetch = fetch
        }
    }

    mutating func repeatAll(at now: Duration) {
        for index in runners.indices { runners[index].fetch?.deadline = now }
    }

    var nextDeadline: Duration? { runners.lazy.compactMap { $0.fetch?.deadline }.min() }
}

extension ReplicaMachine {
    /// A subject has everything up to a number, and gets what follows from here on. It is a store that has its
    /// snapshot, or the first local store of a bridged state.
    mutating func ready(
        _ subject: HostingSubject, through position: SequenceNumber, _ request: UInt64,
        at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard hosting[subject]?.phase.request == request else { return }
        wantFeed(at: now, into: &effects)
        guard let live else {
            // It isn't known yet where the feed begins. Once the subscription is proven, the subject is opened again,
            // and becomes ready again.
            hosting[subject]?.phase = .wanted
            return
        }
        catchUps.leave(subject)
        effects.append(.deliver(.begin(subject)))
        // If its position is above `live`, the applier skips what it has already.
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

    /// Continues until every runner is where the feed is, as long as there is room and something to
    /// deliver.
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

    /// Sends the next fetch only once everything that arrived is delivered. So catching up leaves processor time for
    /// the receipts of other stores.
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

    /// Takes the answer to a fetch, if it is a runner's.
    ///
    /// - Returns: Whether it is a runner's.
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
        // The answer brought nothing new, and the next one would not either: wait for a while.
        if catchUps.runners[index].end == end {
            catchUps.runners[index].fetch = PendingFetch(
                request: 0, deadline: now + settings.fetchPatience)
        }
        pumpCatchUps(at: now, into: &effects)
        return true
    }

    /// The log no longer holds, or can't read, what these members lack. Stores begin anew with newer snapshots. For
    /// bridged states, an event reports what they will never see.
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
            // A repeated request keeps its number, so that the first answer counts.
            catchUps.runners[index].fetch = fetch(
                from: pending.from, request: pending.request, at: now, into: &effects)
        }
        pumpCatchUps(at: now, into: &effects)
    }
}
