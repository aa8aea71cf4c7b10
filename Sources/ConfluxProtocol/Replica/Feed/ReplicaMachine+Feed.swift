import ConfluxVocabulary

/// The feed: proof of the subscription (rule 4), holes (rule 5) and beats (rule 6).
extension ReplicaMachine {
    mutating func wantFeed(at now: Duration, into effects: inout [ReplicaEffect]) {
        guard feed == .unwanted else { return }
        feed = .proving(since: now)
        if phase == .joined, let welcome { effects.append(.subscribe(welcome.feed)) }
    }

    /// The log has reached this number. A node that bridges and has no store of its own follows no feed. It passes
    /// over every number that it hears of, so that a store that is made later begins there.
    mutating func hear(of last: SequenceNumber, into effects: inout [ReplicaEffect]) {
        guard feed == .unwanted, hosting.count > 0, live.map({ $0 < last }) ?? true else { return }
        live = last
        // Numbers that are passed over belong to the node's history: it must learn if the log loses
        // them.
        remember(log, last, of: epoch)
        effects.append(.deliver(.passOver(last)))
    }

    /// When to ask for the log's last number; nil unless this node bridges and follows no feed.
    var hearingDue: Duration? {
        guard feed == .unwanted, hosting.count > 0, let limits = welcome?.limits else { return nil }
        return askedForLastAt + max(limits.silenceMax / 4, settings.progressPauseMin)
    }

    /// Asks for the log's last number if that is due. The answer also shows that the sequencer is
    /// there.
    mutating func askForLast(at now: Duration, into effects: inout [ReplicaEffect]) {
        guard let due = hearingDue, now >= due else { return }
        askedForLastAt = now
        ask(.barrier(Barrier(request: Self.ownRequest)), Self.ownRequest, at: now, into: &effects)
    }

    mutating func beaten(
        _ beat: Beat, epoch: Epoch, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard
            hear(
                beat.log, epoch, following: beat.last, at: now, into: &effects)
        else { return }
        remoteLast = max(remoteLast, beat.last)
        // The feed keeps its order: if the beat counts an entry that this node lacks, the entry was
        // lost.
        fillHole(at: now, into: &effects)
    }

    mutating func fed(
        _ commit: Commit, byteCount: Int, epoch: Epoch, at now: Duration,
        into effects: inout [ReplicaEffect]
    ) {
        let before = SequenceNumber(commit.first.rawValue - 1)
        guard hear(commit.log, epoch, following: before, at: now, into: &effects) else { return }
        remoteLast = max(remoteLast, commit.last)
        accept(commit, byteCount: byteCount, at: now, into: &effects)
    }

    /// Whether a message of the feed counts. The first message of the welcome's epoch proves the
    /// subscription: whatever is above it will arrive, or its absence will be noticed.
    private mutating func hear(
        _ log: LogID, _ epoch: Epoch, following last: SequenceNumber, at now: Duration,
        into effects: inout [ReplicaEffect]
    ) -> Bool {
        guard phase == .joined, log == session?.log, feed != .unwanted else { return false }
        guard epoch == self.epoch else {
            meet(epoch, at: now, into: &effects)
            return false
        }
        let wasFollowing = isFollowing
        feed = .following(since: now)
        if !wasFollowing {
            if isDisconnected { reconnect(into: &effects) }
            if live == nil {
                // The beat that begins a subscription may be as old as the term: the welcome may
                // know of more.
                let present = max(last, welcome?.last ?? last)
                let start = followFrom.map { SequenceNumber(max($0.rawValue, 1) - 1) } ?? present
                live = start
                applied = max(applied, start)
                // Numbers that are passed over belong to the node's history: it must learn if the
                // log loses them.
                remember(log, min(start, present), of: epoch)
                effects.append(.deliver(.passOver(start)))
            }
            sendOpens(into: &effects)
            fillHole(at: now, into: &effects)
        }
        return true
    }

    private var hasRoom: Bool { outstandingBytes < settings.deliveryBytesMax }

    private mutating func accept(
        _ commit: Commit, byteCount: Int, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard let live, commit.last > live else { return }
        if commit.first <= live.next, hasRoom {
            advance(commit, byteCount: byteCount, at: now, into: &effects)
            drainBuffer(at: now, into: &effects)
        } else {
            buffer.insert(commit, byteCount: byteCount)
            if buffer.byteCount > settings.bufferBytesMax { buffer.removeAll() }
        }
        fillHole(at: now, into: &effects)
    }

    /// Delivers the commit that follows `live`. A node that follows from a number of its own choice
    /// may begin in the middle of a commit, and gets the whole commit.
    private mutating func advance(
        _ commit: Commit, byteCount: Int, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        if let liveEpoch, commit.predecessor != liveEpoch {
            // The commit follows another history than the one that was applied.
            loseHistory(agreed: .zero, at: now, into: &effects)
            greet(at: now, into: &effects)
            return
        }
        effects.append(.deliver(.commit(commit, byteCount: byteCount)))
        outstandingBytes += byteCount
        live = commit.last
        liveEpoch = commit.epoch
        remember(commit.log, commit.last, of: commit.epoch)
        keepForCatchUp(commit, byteCount: byteCount)
        learnOwn(of: commit, into: &effects)
    }

    /// Takes the outcomes of this node's own actions from a commit on the feed: it is as good as
    /// receipts.
    private mutating func learnOwn(of commit: Commit, into effects: inout [ReplicaEffect]) {
        // The batches of timers have no session, and are not this node's, even if it has none either.
        guard incarnation != .none else { return }
        var sequence = commit.first
        for block in commit.blocks {
            if case .batch(let incarnation, let batch) = block, incarnation == self.incarnation {
                learn(
                    ActionOutcome(
                        firstCounter: batch.firstCounter, count: batch.count,
                        status: .committed(
                            commit.log, sequence, commit.epoch, commit.timestamp)),
                    into: &effects)
            }
            sequence = sequence.advanced(by: UInt64(block.count))
        }
    }

    private mutating func drainBuffer(at now: Duration, into effects: inout [ReplicaEffect]) {
        while hasRoom, let live, let item = buffer.take(after: live) {
            advance(item.commit, byteCount: item.byteCount, at: now, into: &effects)
        }
    }

    /// Fetches what follows `live`, if it is known to exist and the feed did not bring it.
    mutating func fillHole(at now: Duration, into effects: inout [ReplicaEffect]) {
        guard phase == .joined, feed != .unwanted, holeFetch == nil, hasRoom, let live,
            live < remoteLast
        else {
            return
        }
        holeFetch = fetch(from: live.next, at: now, into: &effects)
    }

    /// Sends a fetch. A repeated fetch keeps its `request`, so that the first answer counts,
    /// however late it arrives.
    mutating func fetch(
        from sequence: SequenceNumber, request repeated: UInt64? = nil, at now: Duration,
        into effects: inout [ReplicaEffect]
    ) -> PendingFetch {
        let request = repeated ?? nextRequest
        if repeated == nil { nextRequest += 1 }
        effects.append(
            .send(
                .fetch(
                    Fetch(
                        request: request, from: sequence, limitBytes: settings.fetchBytes,
                        acknowledged: acknowledged))))
        return PendingFetch(
            request: request, from: sequence,
            deadline: now + max(settings.fetchPatience, slowPatience))
    }

    mutating func retryFetches(at now: Duration, into effects: inout [ReplicaEffect]) {
        if let pending = holeFetch, now >= pending.deadline {
            holeFetch = nil
            if pending.from > .zero { slowDown() }
            if pending.from > .zero, pending.from == live?.next, hasRoom {
                holeFetch = fetch(
                    from: pending.from, request: pending.request, at: now, into: &effects)
            } else {
                fillHole(at: now, into: &effects)
            }
        }
        retryCatchUps(at: now, into: &effects)
    }

    /// An answer took too long: the next one may take longer.
    mutating func slowDown() {
        slowPatience = min(
            max(settings.fetchPatience, slowPatience) * 2, settings.fetchPatienceMax)
    }

    /// Drops a message that came before the welcome. What it answers is not overdue: it is asked for again after the
    /// welcome.
    mutating func drop(_ message: SequencerMessage, at now: Duration) {
        switch message {
        case .entries(let entries):
            let again = PendingFetch(request: 0, deadline: now)
            if holeFetch?.request == entries.request { holeFetch = again }
            catchUps.replace(fetch: entries.request, by: again)
        case .snapshotServed(let served): loads[served.request]?.deadline = nil
        default: break
        }
    }

    /// The thread that applies has made progress: whatever waited for room continues.
    mutating func advance(
        to progress: ApplyProgress, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        outstandingBytes -= progress.liveBytes - self.progress.liveBytes
        catchUps.handOver(progress.catchUpBytes - self.progress.catchUpBytes)
        self.progress = progress
        // What was applied of a lost history says nothing about this one.
        if progress.resets == resets {
            applied = max(applied, min(progress.applied, live ?? .zero))
        }
        guard phase == .joined else { return }
        if hasRoom {
            drainBuffer(at: now, into: &effects)
            fillHole(at: now, into: &effects)
        }
        pumpCatchUps(at: now, into: &effects)
    }

    mutating func entries(
        _ entries: Entries, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        guard holeFetch?.request == entries.request else {
            if caughtUp(entries, at: now, into: &effects) {
                remoteLast = max(remoteLast, entries.last)
            }
            return
        }
        holeFetch = nil
        remoteLast = max(remoteLast, entries.last)
        guard let wanted = live?.next else { return }
        let floor = floor(of: entries, into: &effects)
        if wanted < floor {
            passOver(from: wanted, floor: floor, at: now, into: &effects)
            return
        }
        for body in entries.commits {
            guard let commit = decode(body, into: &effects) else { return }
            guard let live, commit.last > live, commit.first <= live.next else { continue }
            advance(commit, byteCount: body.count, at: now, into: &effects)
        }
        // The answer brought nothing new, and the next one would not either: wait for a while.
        if live?.next == wanted {
            holeFetch = PendingFetch(request: 0, deadline: now + settings.fetchPatience)
        }
        drainBuffer(at: now, into: &effects)
        fillHole(at: now, into: &effects)
        pumpCatchUps(at: now, into: &effects)
    }

    mutating func decode(_ body: Bytes, into effects: inout [ReplicaEffect]) -> Commit? {
        do {
            return try Commit.decode(body: body)
        } catch {
            end(.unreadable("\(error)"), into: &effects)
            return nil
        }
    }

    /// The number behind everything that the log no longer holds, or can't read. Damage is reported
    /// once.
    mutating func floor(
        of entries: Entries, into effects: inout [ReplicaEffect]
    ) -> SequenceNumber {
        guard let damage = entries.damage else { return entries.floor }
        if damage != self.damage {
            self.damage = damage
            effects.append(.event(.damaged(damage)))
        }
        return max(entries.floor, damage.last.next)
    }

    /// The log no longer holds, or can't read, what this node lacks, so the node continues behind it. Stores begin
    /// anew with snapshots. If a state is bridged, or somebody follows the log, an event reports what they will never
    /// see.
    private mutating func passOver(
        from wanted: SequenceNumber, floor: SequenceNumber, at now: Duration,
        into effects: inout [ReplicaEffect]
    ) {
        let last = SequenceNumber(floor.rawValue - 1)
        let isBridged = hosting.subjects.contains { if case .state = $0 { true } else { false } }
        if isBridged || followFrom != nil {
            effects.append(.event(.missed(from: wanted, through: last)))
        }
        live = last
        liveEpoch = nil
        // As at the beginning of the feed, these numbers belong to the node's history.
        if let session { remember(session.log, last, of: epoch) }
        effects.append(.deliver(.passOver(last)))
        let stores = hosting.subjects.compactMap { subject in
            if case .store(let store) = subject { store } else { nil }
        }
        for store in stores.sorted() { reopen(store, at: now, into: &effects) }
        drainBuffer(at: now, into: &effects)
        fillHole(at: now, into: &effects)
    }
}
