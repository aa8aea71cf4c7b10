import ConfluxLog
import ConfluxThreads
import ConfluxVocabulary

/// A checkpoint or a snapshot that is partly saved.
struct EtcdUpload {
    let id: Identifier
    /// The snapshot; nil for a checkpoint.
    var snapshot: SavedSnapshot?
    /// The checkpoint's number, and how many pieces it has.
    var sequence = SequenceNumber.zero
    var pieceCount: UInt32 = 0
    /// How many pieces are saved.
    var savedCount: UInt32 = 0
    /// How many bytes are saved.
    var byteCount: UInt64 = 0
    /// Of the bytes of a checkpoint.
    var hasher = ChecksumHasher()
}

/// Checkpoints, snapshots and truncation.
extension EtcdLog {
    /// Writes what is too large for one value in parts. They don't count until a record names them.
    func writeParts(of record: EtcdRecord, _ commits: [LoggedCommit]) throws(LogError) {
        guard case .elsewhere(let tag, _, _) = record.contents else { return }
        let folder = try openReading().layout.largeParts(record.last, tag)
        let bytes = EtcdRecord.encode(commits)
        var start = 0
        while start < bytes.count {
            let part = bytes.dropFirst(start).prefix(EtcdRecord.valueBytesMax)
            start += part.count
            let end = UInt64(start)
            try change(
                [
                    .put(
                        EtcdLayout.part(folder, endingAt: end),
                        EtcdPart.value(part, endingAt: end))
                ], "Appending entries \(record.first) to \(record.last)")
        }
    }

    /// Saves a piece of a checkpoint, in transactions of 1 MiB at most.
    ///
    /// - Parameter piece: The piece to save.
    /// - Throws: `invalidCheckpoint`, `notClaimed`, `superseded`, `full`, `failed`, `unreachable`, `denied`,
    ///   `unknownOutcome`, `closed`.
    public func save(_ piece: CheckpointPiece) throws(LogError) {
        let reading = try openReading()
        let layout = reading.layout
        guard let term else { throw .notClaimed }
        try piece.validate(from: floor, endingAt: last)
        let key = layout.checkpointUpload
        let attempt = "Saving the checkpoint at \(piece.sequence)"
        if piece.index == 0 {
            let upload = EtcdUpload(
                id: .random(), sequence: piece.sequence, pieceCount: piece.count)
            try begin(upload, at: key, attempt)
        }
        guard var upload = self.term?.uploads[key], upload.savedCount == piece.index,
            upload.sequence == piece.sequence, upload.pieceCount == piece.count
        else {
            throw .outOfOrder(piece, after: Int(term.uploads[key]?.savedCount ?? 0))
        }
        try add(piece.bytes, to: &upload, attempt)
        upload.savedCount += 1
        if piece.isLast {
            let place = EtcdReading.CheckpointPlace(
                sequence: piece.sequence, byteCount: upload.byteCount,
                checksum: upload.hasher.finish(), id: upload.id)
            let others = try reading.checkpoints()
            // An earlier change whose answer was lost may have listed it.
            guard !others.contains(where: { $0.1?.id == upload.id }) else {
                self.term?.uploads[key] = nil
                return
            }
            let kept = others.last { $0.0 < piece.sequence }?.0
            let entry = layout.checkpoint(piece.sequence)
            var operations: [EtcdTransaction.Operation] = [
                .put(entry, place.value(at: entry)), .delete(.key(key)),
            ]
            for (sequence, place) in others where sequence != kept {
                if sequence != piece.sequence {
                    operations.append(.delete(.key(layout.checkpoint(sequence))))
                }
                if let place { operations.append(.delete(.below(layout.parts(place.id)))) }
            }
            try change(operations, attempt)
            self.term?.uploads[key] = nil
        } else {
            self.term?.uploads[key] = upload
        }
    }

    /// The newest checkpoint at or below a number, verified.
    ///
    /// - Parameter last: The highest number that it may have.
    /// - Returns: The checkpoint; nil if there is none.
    /// - Throws: `damaged`, with its number; `unreachable`, `denied`, `failed`, `closed`.
    public func checkpoint(through last: SequenceNumber) throws(LogError) -> SavedCheckpoint? {
        try openReading().checkpoint(through: last)
    }

    /// Saves a piece of a store's snapshot, in transactions of 1 MiB at most.
    ///
    /// - Parameter piece: The piece to save.
    /// - Throws: `invalidSnapshot`, `notClaimed`, `superseded`, `full`, `failed`, `unreachable`, `denied`,
    ///   `unknownOutcome`, `closed`.
    public func save(_ piece: SnapshotPiece) throws(LogError) {
        let reading = try openReading()
        guard term != nil else { throw .notClaimed }
        try piece.validate(endingAt: last)
        let snapshot = piece.snapshot
        let key = reading.layout.upload(of: snapshot.store)
        // The last of the quota is for checkpoints and truncation. etcd refuses all writes once it is used up.
        guard tracker.hasRoom(for: piece.bytes.count) else {
            // The next attempt begins anew, so what is saved of this one takes room in vain.
            if let upload = term?.uploads[key] {
                try change(
                    [.delete(.below(reading.layout.parts(upload.id))), .delete(.key(key))],
                    "Discarding what is saved of the snapshot of \(snapshot.key)")
                term?.uploads[key] = nil
            }
            throw LogError(
                .full,
                "Saving the snapshot of \(snapshot.key) needs more room than etcd has left. Raise "
                    + "--quota-backend-bytes and --log-limit, or drop stores.")
        }
        let attempt = "Saving the snapshot of \(snapshot.key)"
        if piece.offset == 0 {
            try begin(EtcdUpload(id: .random(), snapshot: snapshot), at: key, attempt)
        }
        guard var upload = term?.uploads[key], upload.snapshot == snapshot,
            upload.byteCount == piece.offset
        else { throw .outOfOrder(piece) }
        try add(piece.bytes, to: &upload, attempt)
        if piece.isLast {
            try finish(upload, snapshot, at: key, attempt)
            term?.uploads[key] = nil
        } else {
            term?.uploads[key] = upload
        }
    }

    /// Lists a complete snapshot, and removes those that it retires from the list.
    private func finish(
        _ upload: EtcdUpload, _ snapshot: SavedSnapshot, at key: String, _ attempt: String
    ) throws(LogError) {
        let reading = try openReading()
        let layout = reading.layout
        let places = try reading.places(of: snapshot.store)
        // An earlier change whose answer was lost may have listed it.
        guard !places.contains(where: { $0.id == upload.id }) else { return }
        let others = places.map(\.snapshot)
        guard !snapshot.gives(wayTo: others) else {
            return try change(
                [.delete(.below(layout.parts(upload.id))), .delete(.key(key))], attempt)
        }
        let retired = snapshot.retires(among: others)
        let entry = layout.snapshot(snapshot.key)
        let place = EtcdReading.SnapshotPlace(snapshot, id: upload.id)
        var operations: [EtcdTransaction.Operation] = [
            .put(entry, place.value(at: entry)), .delete(.key(key)),
        ]
        for other in places
        where retired.contains(other.snapshot) || other.snapshot.key == snapshot.key {
            if other.snapshot.key != snapshot.key {
                operations.append(.delete(.key(layout.snapshot(other.snapshot.key))))
            }
            operations.append(.delete(.below(layout.parts(other.id))))
        }
        try change(operations, attempt)
    }

    /// The complete snapshots that are not above `last`, ascending by store and number.
    ///
    /// - Throws: `damaged`, `unreachable`, `denied`, `failed`, `closed`.
    public func snapshots() throws(LogError) -> [SavedSnapshot] {
        let list = try snapshotList()
        if let damage = list.damage { throw LogError(.damaged, damage.message) }
        return list.intact
    }

    /// The same list, but damage is not an error.
    ///
    /// - Throws: `unreachable`, `denied`, `failed`, `closed`.
    public func snapshotList() throws(LogError) -> SnapshotList {
        try openReading().snapshotList(through: last)
    }

    /// Reads and verifies bytes of a snapshot.
    ///
    /// - Parameters:
    ///   - key: The snapshot's key.
    ///   - offset: The offset of the first byte to read.
    ///   - limitBytes: The most bytes to read; at least one is read.
    /// - Returns: The bytes, none after its end; nil if there is no such complete snapshot.
    /// - Throws: `damaged`, with its number; `unreachable`, `denied`, `failed`, `closed`.
    public func readSnapshot(
        of key: SavedSnapshot.Key, from offset: UInt64, limitBytes: Int
    ) throws(LogError) -> Bytes? {
        try openReading().readSnapshot(of: key, from: offset, limitBytes: limitBytes)
    }

    /// Removes all snapshots of a store.
    ///
    /// - Parameter store: The store.
    /// - Throws: `notClaimed`, `superseded`, `full`, `failed`, `unreachable`, `denied`, `unknownOutcome`, `closed`.
    public func removeSnapshots(of store: StoreName) throws(LogError) {
        let reading = try openReading()
        guard term != nil else { throw .notClaimed }
        let layout = reading.layout
        let key = layout.upload(of: store)
        var operations: [EtcdTransaction.Operation] = [
            .delete(.below(layout.snapshots(of: store))), .delete(.key(key)),
        ]
        let ids =
            try reading.places(of: store).map(\.id) + (term?.uploads[key].map { [$0.id] } ?? [])
        operations += ids.map { .delete(.below(layout.parts($0))) }
        try change(operations, "Discarding the snapshots of \(store)")
        term?.uploads[key] = nil
    }

    /// Discards commits whose entries are all below a number, in each call those of one transaction. At the
    /// end it compacts etcd's history of the discarded keys. Commits that were appended together are
    /// discarded together.
    ///
    /// - Parameters:
    ///   - floor: The lowest number to keep.
    ///   - limitBytes: About the most bytes to discard.
    /// - Returns: Whether it is done.
    /// - Throws: `invalidFloor`, `notClaimed`, `superseded`, `full`, `failed`, `unreachable`, `denied`, `damaged`,
    ///   `unknownOutcome`, `closed`.
    public func truncate(
        below floor: SequenceNumber, limitBytes: Int
    ) throws(LogError) -> Bool {
        let reading = try openReading()
        guard term != nil else { throw .notClaimed }
        if floor > self.floor {
            let standing = try reading.checkpoints().count { $0.0.next >= floor && $0.1 != nil }
            guard standing >= 2 else { throw .invalidFloor(floor) }
            if let next = try givenUp(below: floor, limitBytes: limitBytes, reading) {
                let layout = reading.layout
                let before = SequenceNumber(next.first.rawValue - 1)
                try change(
                    [
                        .put(layout.floor, next.value(at: layout.floor)),
                        .delete(layout.records(through: before)),
                        .delete(layout.large(through: before)),
                    ], "Discarding the entries below \(next.first)")
                rise(to: next)
                return false
            }
        }
        if isNearlyFull { try removeSuperseded(reading) }
        // Only discarded keys have a history to compact.
        guard self.term?.hasDiscarded == true else { return true }
        self.term?.hasDiscarded = false
        try giveBack(isAwaited: isNearlyFull)
        return true
    }

    /// Removes the snapshots that newer ones supersede.
    private func removeSuperseded(_ reading: EtcdReading) throws(LogError) {
        let list = try reading.snapshotList(through: last).intact
        for snapshot in SavedSnapshot.superseded(among: list) {
            guard let place = try reading.place(of: snapshot.key) else { continue }
            try change(
                [
                    .delete(.key(reading.layout.snapshot(snapshot.key))),
                    .delete(.below(reading.layout.parts(place.id))),
                ], "Discarding the snapshot of \(snapshot.key)")
        }
    }

    /// The log's floor after the next step of a truncation; nil if there is nothing to discard.
    private func givenUp(
        below floor: SequenceNumber, limitBytes: Int, _ reading: EtcdReading
    ) throws(LogError) -> EtcdFloor? {
        var found: EtcdFloor?
        var byteCount = 0
        for pair in try reading.page(from: self.floor, limitBytes: limitBytes).pairs {
            guard let number = EtcdLayout.number(endingIn: pair.key), number < floor.rawValue,
                number < last.rawValue, found == nil || byteCount < limitBytes
            else { break }
            guard let record = EtcdRecord(pair.value), record.last.rawValue == number else {
                throw .damaged(
                    self.floor, SequenceNumber(number), "its bytes are not those that were written")
            }
            byteCount += pair.value.count
            if case .elsewhere(_, let count, _) = record.contents {
                byteCount += Int(clamping: count)
            }
            found = EtcdFloor(first: record.last.next, hash: record.hash)
        }
        return found
    }

    /// How often to check whether discarded space is free, and the pause between two checks.
    private static let looksMax = 20
    private static let lookPause = Duration.milliseconds(100)

    /// Compacts etcd's history of what was discarded.
    ///
    /// - Parameter isAwaited: Whether to wait until the space is free, because space is short.
    /// - Throws: `closed`.
    func giveBack(isAwaited: Bool) throws(LogError) {
        let reading = try openReading()
        tracker.giveBack(reading.client, isAwaited: isAwaited)
        guard isAwaited, let beginning = term?.beginning else { return }
        // etcd counts freed space as free only with the next write to its file.
        let never = Latch()
        let deadline = ContinuousClock.now + Self.lookPause * Self.looksMax
        while ContinuousClock.now < deadline {
            guard tracker.reviewNow(reading.client), tracker.space.room == .nearlyFull,
                tracker.space.advice == nil
            else { return }
            let key = reading.layout.floor
            try change([.put(key, beginning.value(at: key))], "Freeing space")
            never.wait(for: Self.lookPause)
        }
    }

    // MARK: Uploads

    /// Removes what former terms left unfinished, and the parts that they wrote after the end of the log.
    ///
    /// - Parameter pairs: The keys of the unfinished uploads.
    /// - Throws: Like every change of the log.
    func giveUpUnfinished(_ pairs: [EtcdPair]) throws(LogError) {
        let layout = try openReading().layout
        var rest = pairs[...]
        repeat {
            // A transaction of etcd has at most 128 operations.
            let some = rest.prefix(40)
            rest = rest.dropFirst(some.count)
            var operations: [EtcdTransaction.Operation] = [.delete(layout.large(behind: last))]
            for pair in some {
                operations.append(.delete(.key(pair.key)))
                guard let id = EtcdText(pair.value, at: pair.key)?.identifier(0) else { continue }
                operations.append(.delete(.below(layout.parts(id))))
            }
            try change(operations, "Discarding what was not finished")
        } while !rest.isEmpty
    }

    private func begin(
        _ upload: EtcdUpload, at key: String, _ attempt: String
    ) throws(LogError) {
        let reading = try openReading()
        let layout = reading.layout
        var operations: [EtcdTransaction.Operation] = [
            .put(key, EtcdText(["\(upload.id)"]).value(at: key))
        ]
        // The former upload may be listed already, by a change whose answer was lost. Then the key no longer
        // names it, and its parts stay.
        if term?.uploads[key] != nil,
            let pair = try reading.look([.read(.key(key))], attempt).pair(0)
        {
            guard let id = EtcdText(pair.value, at: key)?.identifier(0) else {
                throw .damagedKey(key)
            }
            operations.append(.delete(.below(layout.parts(id))))
        }
        try change(operations, attempt)
        term?.uploads[key] = upload
    }

    private func add(
        _ bytes: Bytes, to upload: inout EtcdUpload, _ attempt: String
    ) throws(LogError) {
        let folder = try openReading().layout.parts(upload.id)
        var rest = bytes
        while !rest.isEmpty {
            let part = rest.prefix(EtcdRecord.valueBytesMax)
            rest = rest.dropFirst(part.count)
            let end = upload.byteCount + UInt64(part.count)
            try change(
                [
                    .put(
                        EtcdLayout.part(folder, endingAt: end),
                        EtcdPart.value(part, endingAt: end))
                ], attempt)
            upload.byteCount = end
            upload.hasher.update(part)
        }
    }
}
