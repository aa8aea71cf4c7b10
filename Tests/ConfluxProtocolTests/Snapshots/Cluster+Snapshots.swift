import ConfluxHashing
import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

extension Cluster.Disk {
    /// A snapshot as a log stores it.
    struct SavedSnapshot: Equatable {
        var place: SnapshotPlace
        var reference: SnapshotReference
        var isConfirmed: Bool
        var bytes: [UInt8] = []
        var isWhole: Bool { UInt64(bytes.count) == reference.byteCount }
    }

    /// The confirmed snapshots, in ascending order.
    var index: [SnapshotIndexEntry] {
        snapshots.values.filter { $0.isConfirmed && $0.place.sequence <= last }
            .sorted { ($0.place.store, $0.place.sequence) < ($1.place.store, $1.place.sequence) }
            .map { SnapshotIndexEntry(place: $0.place, reference: $0.reference) }
            + asides.values.map {
                SnapshotIndexEntry(place: $0.place, reference: $0.reference, isAside: true)
            }
    }

    /// - Returns: Whether the part was the next one.
    mutating func save(_ part: SnapshotPart) -> Bool {
        let store = part.place.store
        if part.offset == 0 {
            unfinished[store] = SavedSnapshot(
                place: part.place, reference: part.reference, isConfirmed: part.isConfirmed)
        }
        guard var saved = unfinished[store], saved.place == part.place,
            saved.reference == part.reference, saved.isConfirmed == part.isConfirmed,
            UInt64(saved.bytes.count) == part.offset
        else { return false }
        saved.bytes += part.bytes
        unfinished[store] = saved.isWhole ? nil : saved
        guard saved.isWhole else { return true }
        // The newest two confirmed ones stay, each with another number.
        let rivals = snapshots.values.filter { $0.place.store == store && $0.isConfirmed }
            .filter { $0.place.life == part.place.life && $0.place.sequence != part.place.sequence }
        let kept = rivals.sorted { $0.place.sequence > $1.place.sequence }
            .prefix(saved.isConfirmed ? 1 : 2)
        snapshots = snapshots.filter { place, _ in
            place.store != store || kept.contains { $0.place == place }
        }
        snapshots[part.place] = saved
        if saved.isConfirmed { asides[store] = nil }
        return true
    }

    func chunk(of place: SnapshotPlace, at offset: UInt64, limitBytes: Int) -> SnapshotChunk {
        let aside = asides[place.store].flatMap { $0.place == place ? $0 : nil }
        guard let saved = snapshots[place] ?? aside, offset < saved.reference.byteCount else {
            return .none(of: place)
        }
        let rest = saved.bytes[...].dropFirst(Int(offset))
        return SnapshotChunk(
            place: place, offset: offset, byteCount: saved.reference.byteCount,
            bytes: rest.prefix(max(1, limitBytes)))
    }

    mutating func removeSnapshots(of store: StoreName) {
        snapshots = snapshots.filter { $0.key.store != store }
        unfinished[store] = nil
        asides[store] = nil
    }

    mutating func truncate(below floor: SequenceNumber) {
        #expect(floor >= self.floor, "the floor went from \(self.floor) to \(floor)")
        self.floor = floor
        bodies.removeAll { $0.last < floor }
    }
}

extension Cluster {
    /// A cluster whose sequencer sets digest points and saves snapshots after few bytes, and retains few entries.
    static func eager(
        nodes names: [String] = ["alpha", "beta"],
        adjusting adjust: (inout SequencerSettings) -> Void = { _ in }
    ) -> Cluster {
        var cluster = Cluster()
        cluster.settings.digestBytesMin = 64
        cluster.settings.digestRatioMin = 1
        cluster.settings.snapshotBytesMin = 64
        cluster.settings.snapshotPartBytesMax = 1_024
        cluster.settings.retention.bytesMax = 1
        adjust(&cluster.settings)
        cluster.startSequencer()
        for (index, name) in names.enumerated() {
            cluster.addNode(index + 1, named: name, store: "list")
        }
        return cluster
    }

    mutating func listSnapshots() {
        let listed = disk.index.filter { unlisted?.isLost($0) != true }
        let damage = unlisted.map {
            SnapshotIndexDamage(stores: $0.stores, message: "The list is damaged.")
        }
        handle(.snapshotsRead(listed, damage: damage))
    }

    mutating func save(_ part: SnapshotPart) {
        let isSaved = savingFailure == nil && disk.save(part)
        let failure = isSaved ? nil : savingFailure ?? "out of order"
        let step = Step.saved(
            SnapshotSaved(
                place: part.place, whole: isSaved && part.isLast ? part.reference : nil,
                failure: failure))
        if isSavingSlow { waitingSaves.append(step) } else { queue.append(step) }
    }

    /// Keeps the entries up to a number that concern these stores aside from the log.
    mutating func keepAside(_ jobs: [AsideJob], through last: SequenceNumber) {
        guard !isKeepingSlow else {
            waitingKeeps.append((jobs, last))
            return
        }
        var kept: [AsideKept] = []
        for job in jobs {
            let former = disk.asides[job.store]
            #expect(former?.reference == job.former)
            var entries = AsideEntries(
                job.store, life: job.life, after: job.after, behind: former?.bytes[...] ?? [])
            for entry in disk.bodies where entry.first <= last {
                guard let commit = try? Commit.decode(body: entry.body) else {
                    Issue.record("an unreadable commit")
                    return
                }
                entries.add(commit)
            }
            let bytes = entries.bytes
            var reference: SnapshotReference?
            if !bytes.isEmpty {
                let found = SnapshotReference(
                    sequence: last, schemaVersion: 0, digest: Digest(of: bytes),
                    byteCount: UInt64(bytes.count))
                reference = found
                disk.asides[job.store] = Disk.SavedSnapshot(
                    place: SnapshotPlace(store: job.store, life: job.life, sequence: last),
                    reference: found, isConfirmed: false, bytes: bytes)
            }
            kept.append(
                AsideKept(store: job.store, life: job.life, through: last, reference: reference))
        }
        handle(.keptAside(kept))
    }

    mutating func finishKeeping() {
        isKeepingSlow = false
        let waiting = waitingKeeps
        waitingKeeps = []
        for (jobs, last) in waiting { keepAside(jobs, through: last) }
        run()
    }

    mutating func finishSaves(areNextSlow: Bool = false) {
        isSavingSlow = areNextSlow
        queue += waitingSaves
        waitingSaves.removeAll()
        run()
    }

    /// Dispatches one text of this size that begins with `text`.
    mutating func grow(_ target: String, by bytes: Int, from id: NodeID, text: String = "") {
        let padding = String(repeating: "x", count: max(0, bytes - text.utf8.count))
        dispatch([text + padding], to: target, from: id)
    }

    /// Saves a checkpoint at the end of the log. The newest two checkpoints are kept.
    mutating func saveCheckpoint() throws {
        var recovery = LogRecovery(
            log: disk.id, through: disk.last, in: disk.lastEpoch, floor: disk.floor)
        while recovery.demand != .nothing {
            switch recovery.demand {
            case .checkpoint(let last):
                let found = disk.checkpoints.last { $0.sequence <= last }
                recovery.take(found.map { .found($0.sequence, $0.bytes) } ?? .none)
            case .entries(let from):
                try recovery.take(disk.bodies.filter { $0.last >= from }.map(\.body))
            case .nothing: break
            }
        }
        guard recovery.logState.last > disk.checkpoints.last?.sequence ?? .zero else { return }
        disk.checkpoints =
            disk.checkpoints.suffix(1) + [
                (recovery.logState.last, recovery.logState.encoded()[...])
            ]
        handle(.checkpointSaved(recovery.logState.last))
        run()
    }

    /// The process dies, and starts again with what is on the disk.
    mutating func restartFromDisk() {
        killSequencer()
        claimAndRead()
        for id in nodes.keys.sorted() { reconnect(id) }
        pass(.seconds(1))
    }

    /// The numbers of a store's digest points in the log.
    func points(of store: String) throws -> [SequenceNumber] {
        try events().compactMap { event, sequence in
            guard case .digestPoint(let name, _) = event, name == StoreName(store) else {
                return nil
            }
            return sequence
        }
    }

    func events() throws -> [(event: LogEvent, sequence: SequenceNumber)] {
        var events: [(event: LogEvent, sequence: SequenceNumber)] = []
        for entry in disk.bodies {
            let commit = try Commit.decode(body: entry.body)
            var sequence = commit.first
            for block in commit.blocks {
                if case .event(let event, _) = block { events.append((event, sequence)) }
                sequence = sequence.advanced(by: UInt64(block.count))
            }
        }
        return events
    }

    /// The numbers of the entries that concern a store.
    func entries(of store: StoreName) throws -> [SequenceNumber] {
        var numbers: [SequenceNumber] = []
        for entry in disk.bodies {
            let commit = try Commit.decode(body: entry.body)
            var sequence = commit.first
            for block in commit.blocks {
                if case .batch(_, let batch) = block {
                    var number = sequence
                    batch.forEachEntry { row, _ in
                        if batch.targets[row].target.concerns(store) { numbers.append(number) }
                        number = number.next
                    }
                }
                sequence = sequence.advanced(by: UInt64(block.count))
            }
        }
        return numbers
    }

    /// The number with which openers of a store begin.
    func base(of store: String) -> SequenceNumber? {
        StoreName(store).flatMap { sequencer?.directory.store($0)?.baseSequence }
    }

    /// The snapshots that were taken. `failed` has those that failed.
    var taken: [SnapshotPlace] {
        notes.compactMap { if case .snapshotTaken(let place, _) = $0 { place } else { nil } }
    }

    var failed: [SnapshotPlace] {
        notes.compactMap { if case .snapshotFailed(let place, _) = $0 { place } else { nil } }
    }

    /// The nodes that were passed over as sources of snapshots.
    var passedOver: [Name?] {
        notes.compactMap { note -> Name?? in
            if case .sourcePassedOver(_, _, let name, _, _) = note { .some(name) } else { nil }
        }
    }

    var divergences: [DivergenceStatus] {
        notes.compactMap { if case .diverged(_, let status) = $0 { status } else { nil } }
    }

    func expectBounds(sourceLocation: SourceLocation = #_sourceLocation) {
        for bound in (sequencer?.bounds ?? []) + nodes.values.flatMap(\.machine.bounds) {
            #expect(
                bound.level <= bound.most, "\(bound.name)", sourceLocation: sourceLocation)
        }
    }

    /// Expects that all nodes have the same list.
    func expectAgreement(
        on store: String = "list", sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let lists = nodes.values.map { $0.texts(of: store) }
        #expect(Set(lists).count == 1, sourceLocation: sourceLocation)
    }
}

extension LogSpace {
    static let ample = LogSpace(usedBytes: 0, of: 1 << 30)
    static let scarce = LogSpace(usedBytes: 1 << 29, of: 1 << 30)
    /// As an engine says it for a reason of its own: these logs have few entries.
    static let nearlyFull = {
        var space = LogSpace(usedBytes: 1 << 20, of: 1 << 30)
        space.room = .nearlyFull
        return space
    }()
    static let fullOfOthers = LogSpace(usedBytes: (1 << 30) - 1, of: 1 << 30)
}
