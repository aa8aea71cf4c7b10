import ConfluxEtcd
import ConfluxLog
import ConfluxVocabulary

/// The etcd that several sequencers share, the network to it, and the checks of the log in it.
extension SimulatedCluster {
    /// Begins the log, and observes all changes from then on.
    func openEtcd() {
        guard let etcd else { return }
        do throws(LogError) {
            observer = try EtcdLog(
                settings { [unowned self] in
                    SimulatedEtcdLink(
                        to: etcd, clock: { [unowned self] in now }, status: { .done },
                        postpone: { _ in })
                })
        } catch {
            fail("log", "it can't be opened: \(error)")
        }
        etcd.changed = { [unowned self] in look(at: $0) }
    }

    /// The settings with which a process reaches the log.
    func etcdSettings(of process: Int, _ clock: DriftingClock) -> EtcdLogSettings {
        guard let etcd else { preconditionFailure("nobody has an etcd here") }
        return settings { [unowned self] in
            SimulatedEtcdLink(
                to: etcd, clock: { [unowned self] in clock.reading(at: now) },
                status: { [unowned self] in status(of: process) },
                postpone: { [unowned self] transaction in
                    schedule(
                        .hearLate(transaction),
                        after: random.duration(
                            in: .milliseconds(
                                1)...(random.chance(0.5) ? .milliseconds(100) : .seconds(8))
                        ))
                })
        }
    }

    private func settings(
        _ connect: @escaping () -> any EtcdStore
    ) -> EtcdLogSettings {
        guard let address = EtcdAddress("etcd://127.0.0.1/simulated") else {
            preconditionFailure("no address of an etcd")
        }
        // A simulation runs on a single thread.
        nonisolated(unsafe) let connect = connect
        var settings = EtcdLogSettings(address: address)
        settings.imitation = EtcdImitation(of: disk.id) { connect() }
        return settings
    }

    // MARK: Requests and answers

    private func status(of process: Int) -> EtcdFate {
        guard isHostile else { return .done }
        if now < etcdStoppedUntil || now < cutFromLog[process, default: .zero] {
            marks.hit(.etcdUnreachable)
            slowness += random.duration(in: .milliseconds(200)...(.seconds(3)))
            return random.chance(0.1) ? .late : .unheard
        }
        if strikes(plan.logFailure) {
            marks.hit(.logFailed)
            slowness += random.duration(in: .milliseconds(200)...(.seconds(3)))
            return .unheard
        }
        if strikes(plan.unknownAppend) {
            slowness += random.duration(in: .milliseconds(200)...(.seconds(3)))
            let isDone = random.chance(0.5)
            marks.hit(isDone ? .appendUnknownLanded : .appendUnknownLost)
            return isDone ? .unknown : .late
        }
        guard strikes(plan.requestDoubling) else { return .done }
        marks.hit(.requestDoubled)
        return random.chance(0.5) ? .heardTwice : .doubled
    }

    /// A request arrives after its sender has stopped waiting.
    func hearLate(_ transaction: EtcdTransaction) {
        let changesNothing = transaction.success.allSatisfy {
            if case .read = $0 { true } else { false }
        }
        guard let etcd, !changesNothing else { return }
        let isDone = etcd.apply(transaction).succeeded
        marks.hit(isDone ? .lateRequestDone : .lateRequestRefused)
    }

    // MARK: Observation

    private func look(at changed: Set<String>) {
        do throws(LogError) {
            try mirror(changed)
        } catch {
            fail("log", "it can't be read: \(error)")
        }
        for key in changed {
            if key.hasSuffix("/serving") {
                tellOthers { .hinted(process: $0) }
            } else if key.hasSuffix("/epoch") {
                tellOthers { .doubted(process: $0) }
            }
        }
    }

    /// Watches are hints: they arrive late or not at all.
    private func tellOthers(_ event: (Int) -> ClusterEvent) {
        for process in sequencers.keys.sorted() {
            let isCut = now < cutFromLog[process, default: .zero] || now < etcdStoppedUntil
            guard !isCut, !strikes(plan.feedLoss) else { continue }
            schedule(event(process), after: latency)
        }
    }

    private func mirror(_ changed: Set<String>) throws(LogError) {
        // The sequencers' words about themselves are not part of the log.
        let isOfLog = changed.contains { !$0.hasSuffix("/serving") && !$0.contains("/standbys/") }
        guard isOfLog, let observer else { return }
        let view = try observer.look()
        if view.epoch != disk.epoch {
            guard view.epoch > disk.epoch else {
                return fail("order", "epoch \(view.epoch) follows \(disk.epoch)")
            }
            trace.note(now, "etcd: epoch \(view.epoch)")
            disk.adopt(view.epoch)
        }
        if view.last < disk.last {
            return fail("P2", "the log ended at \(disk.last), now at \(view.last)")
        }
        if view.last > disk.last {
            let commits = try observer.read(from: disk.last.next, limitBytes: .max)
                .map(\.copy)
            guard commits.allSatisfy({ $0.epoch == disk.epoch }) else {
                return fail(
                    "order",
                    "\(commits[0].first) was appended by \(commits[0].epoch), and "
                        + "\(disk.epoch) has claimed the log")
            }
            disk.append(commits, forced: true)
            for commit in commits { appended(commit) }
        }
        if view.floor != disk.shelves.floor { disk.change { $0.floor = view.floor } }
        if changed.contains(where: { $0.contains("/checkpoints/") }) {
            try mirrorCheckpoints(observer)
        }
        if changed.contains(where: { $0.contains("/snapshots/") && !$0.contains("/uploads/") }) {
            try mirrorSnapshots(observer)
        }
    }

    private func mirrorCheckpoints(_ observer: EtcdLog) throws(LogError) {
        var found: [SavedCheckpoint] = []
        var last = observer.last
        while let checkpoint = try observer.checkpoint(through: last) {
            found.append(checkpoint)
            guard checkpoint.sequence > .zero else { break }
            last = SequenceNumber(checkpoint.sequence.rawValue - 1)
        }
        var shelf = CheckpointShelf()
        for checkpoint in found.reversed() {
            guard let piece = checkpoint.pieces(of: max(1, checkpoint.bytes.count)).first else {
                continue
            }
            try shelf.save(piece, from: SequenceNumber(1), endingAt: observer.last)
        }
        disk.change { $0.checkpoints = shelf }
    }

    private func mirrorSnapshots(_ observer: EtcdLog) throws(LogError) {
        var volumes: [(snapshot: SavedSnapshot, bytes: [UInt8])] = []
        for snapshot in try observer.snapshots() {
            let bytes = try observer.readSnapshot(of: snapshot.key, from: 0, limitBytes: .max)
            volumes.append((snapshot, Array(bytes ?? [])))
        }
        let former = disk.shelves.snapshots.listed(through: disk.last)
        disk.change { $0.snapshots = SnapshotShelf(volumes) }
        for (snapshot, bytes) in volumes where !former.contains(snapshot) {
            saved(snapshot, bytes[...])
        }
    }
}
