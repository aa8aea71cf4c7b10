import ConfluxVocabulary

/// The stores that catch up, together, while the rest goes on: each store has its own position
/// (rule 4).
///
///     cursor ──▶ fetched … ──▶ recent ──▶ live
///
/// What the feed brings meanwhile is kept, within a bound, so that the end is reached however
/// fast the log grows. The thread that applies gives an entry to a store if and only if its
/// number is above that store's position, so a cursor that goes back repeats nothing.
struct CatchUp: Sendable {
    /// A store, and the request that its attachment answers.
    struct Member: Sendable {
        var store: StoreName
        var request: UInt64
        var life: SequenceNumber
    }

    /// Everything up to this number was delivered to these stores. *Invariant*: it is below `live`.
    var cursor: SequenceNumber
    /// In the order in which they were opened.
    var members: [Member]
    /// The last commits of the feed.
    var recent = CommitBuffer()
    /// The fetch under way.
    var fetch: ReplicaMachine.PendingFetch?
}

extension ReplicaMachine {
    mutating func host(_ open: Open, at now: Duration, into effects: inout [ReplicaEffect]) {
        if !isAnswerDue { owedSince = now }
        hosting[open.subject] = Hosting(open: open, phase: .wanted)
        if case .store(let store) = open.subject { opening.insert(store) }
        wantFeed(at: now, into: &effects)
        sendOpens(into: &effects)
    }

    /// Asks for what is wanted, once the subscription is proven.
    mutating func sendOpens(into effects: inout [ReplicaEffect]) {
        guard phase == .joined, feed == .following else { return }
        for open in hosting.askForWanted() { effects.append(.send(.open(open))) }
    }

    mutating func endHosting(
        of subject: HostingSubject, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard let former = hosting.remove(subject) else { return }
        if case .store(let store) = subject {
            opening.remove(store)
            stopped[store] = nil
            loads.remove(store)
            leaveCatchUp(store)
            pumpCatchUp(at: now, into: &effects)
            releaseHeld(isForced: false, into: &effects)
        }
        if phase == .joined {
            effects.append(.send(.close(Close(subject: subject))))
        } else if former.phase != .wanted {
            closedMeanwhile.append(subject)
        }
    }

    /// Closes what a hello may have named that was said before, or an open that is not answered yet.
    mutating func sayClosed(into effects: inout [ReplicaEffect]) {
        for subject in closedMeanwhile where hosting[subject] == nil {
            effects.append(.send(.close(Close(subject: subject))))
        }
        closedMeanwhile = []
    }

    mutating func opened(
        _ opened: Opened, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard let subject = hosting.asked(by: opened.request) else { return }
        switch opened.outcome {
        case .failed(let code, let message):
            self.hosting[subject] = nil
            if case .store(let store) = subject { opening.remove(store) }
            effects.append(
                .deliver(
                    .opened(request: opened.request, .failed(code, message: message))))
            releaseHeld(isForced: false, into: &effects)
        case .opened(let life, _, let floor, let snapshot, let aside, let skipped):
            guard case .store(let store) = subject, let snapshot else {
                if case .store(let store) = subject { opening.remove(store) }
                self.hosting[subject]?.phase = .opened(life: life)
                effects.append(
                    .deliver(.opened(request: opened.request, .opened(life: life))))
                return
            }
            let start = SnapshotLoad.Start(floor: floor, aside: aside, skipped: skipped)
            switch snapshot {
            case .whole(let snapshot):
                self.hosting[subject]?.phase = .loading(life: life)
                begin(store, life: life, with: snapshot, start, at: now, into: &effects)
            case .saved(let reference):
                self.hosting[subject]?.phase = .loading(life: life)
                let place = SnapshotPlace(
                    store: store, life: life, sequence: reference.sequence)
                load(place, reference, for: .opening(start), at: now, into: &effects)
            }
        }
    }

    /// The store's snapshot is here; what is kept aside for it may still be missing.
    mutating func begin(
        _ store: StoreName, life: SequenceNumber, with snapshot: Snapshot,
        _ start: SnapshotLoad.Start, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard let aside = start.aside else {
            restore(store, life: life, snapshot, nil, start, into: &effects)
            return
        }
        let place = SnapshotPlace(store: store, life: life, sequence: aside.sequence)
        load(place, aside, for: .following(snapshot, start), at: now, into: &effects)
    }

    /// Gives a store its snapshot; it catches up behind it once it has it.
    mutating func restore(
        _ store: StoreName, life: SequenceNumber, _ snapshot: Snapshot, _ aside: Bytes?,
        _ start: SnapshotLoad.Start, into effects: inout [ReplicaEffect]
    ) {
        // What the log gave up behind the snapshot did not concern the store.
        let below = SequenceNumber(max(start.floor.rawValue, 1) - 1)
        hosting[.store(store)]?.phase = .restoring(
            life: life, position: max(snapshot.sequence, below, start.aside?.sequence ?? .zero),
            request: nextRequest)
        remember(log, max(snapshot.sequence, start.aside?.sequence ?? .zero), of: epoch)
        effects.append(
            .deliver(
                .restore(
                    store, life: life, snapshot, aside: aside, skipped: start.skipped,
                    request: nextRequest)))
        nextRequest += 1
    }

    /// The store has its snapshot.
    mutating func restored(
        _ store: StoreName, _ request: UInt64, at now: Duration,
        into effects: inout [ReplicaEffect]
    ) {
        guard let hosting = hosting[.store(store)],
            case .restoring(let life, let position, request) = hosting.phase
        else { return }
        opening.remove(store)
        self.hosting[.store(store)]?.phase = .opened(life: life)
        effects.append(.deliver(.begin(store)))
        join(
            CatchUp.Member(store: store, request: hosting.open.request, life: life), at: position)
        pumpCatchUp(at: now, into: &effects)
        releaseHeld(isForced: false, into: &effects)
    }

    /// What a store has is of no use: it begins anew with the newest snapshot.
    mutating func reopen(
        _ store: StoreName, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard case .opened = hosting[.store(store)]?.phase else { return }
        if !isAnswerDue { owedSince = now }
        hosting[.store(store)]?.phase = .wanted
        opening.insert(store)
        if !held.isEmpty {
            begunAnew.stores.insert(store)
            begunAnew.heldCount = held.count
        }
        stopped[store] = nil
        leaveCatchUp(store)
        effects.append(.deliver(.detach(store)))
        sendOpens(into: &effects)
        pumpCatchUp(at: now, into: &effects)
    }

    private mutating func leaveCatchUp(_ store: StoreName) {
        catchUp?.members.removeAll { $0.store == store }
        // Nobody waits for what only a closed store would have caught up with.
        if catchUp?.members.isEmpty == true { catchUp = nil }
    }

    /// A store begins to catch up from its snapshot.
    private mutating func join(_ member: CatchUp.Member, at position: SequenceNumber) {
        if catchUp == nil {
            catchUp = CatchUp(cursor: position, members: [member])
        } else {
            catchUp?.members.append(member)
            guard let cursor = catchUp?.cursor, position < cursor else { return }
            // What is under way begins above the new cursor; it is asked for anew.
            catchUp?.cursor = position
            catchUp?.fetch = nil
        }
    }

    mutating func keepForCatchUp(_ commit: Commit, byteCount: Int) {
        guard catchUp != nil else { return }
        catchUp?.recent.insert(commit, byteCount: byteCount)
        catchUp?.recent.shrink(to: settings.recentBytesMax)
    }

    mutating func deliverCatchUp(
        _ commit: Commit, byteCount: Int, into effects: inout [ReplicaEffect]
    ) {
        guard let cursor = catchUp?.cursor, let live,
            commit.last > cursor, commit.last <= live
        else { return }
        effects.append(.deliver(.catchUp(commit, byteCount: byteCount)))
        remember(commit.log, commit.last, of: commit.epoch)
        outstandingBytes += byteCount
        catchUp?.cursor = commit.last
    }

    /// Goes on until the stores are where the feed is, then attaches them.
    mutating func pumpCatchUp(at now: Duration, into effects: inout [ReplicaEffect]) {
        guard let live, let cursor = catchUp?.cursor else { return }
        while outstandingBytes < settings.deliveryBytesMax, let reached = catchUp?.cursor,
            reached < live, let item = catchUp?.recent.take(after: reached)
        {
            deliverCatchUp(item.commit, byteCount: item.byteCount, into: &effects)
        }
        let reached = catchUp?.cursor ?? cursor
        guard reached < live else {
            let members = catchUp?.members ?? []
            catchUp = nil
            for member in members {
                effects.append(.deliver(.attach(member.store)))
                effects.append(
                    .deliver(.opened(request: member.request, .opened(life: member.life))))
            }
            releaseHeld(isForced: false, into: &effects)
            return
        }
        guard phase == .joined, catchUp?.fetch == nil,
            outstandingBytes < settings.deliveryBytesMax
        else { return }
        let pending = fetch(from: reached.next, at: now, into: &effects)
        catchUp?.fetch = pending
    }
}
