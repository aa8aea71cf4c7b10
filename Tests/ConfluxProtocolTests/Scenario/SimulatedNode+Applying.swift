import ConfluxHashing
import ConfluxVocabulary
import Foundation
import Testing

@testable import ConfluxProtocol

/// What a simulated node does with its lists: it applies entries to them, votes on them, sends them and compares them.
extension SimulatedNode {
    private static func encoded(_ texts: [String]) -> [UInt8] {
        Array(("[" + texts.map { "\"\($0)\"" }.joined(separator: ",") + "]").utf8)
    }

    private static func decoded(_ bytes: some Sequence<UInt8>) -> [String] {
        (try? JSONDecoder().decode([String].self, from: Data(bytes))) ?? []
    }

    mutating func restore(
        _ store: StoreName, life: SequenceNumber, _ snapshot: Snapshot, in inForce: VersionInForce,
        _ skipped: [SequenceNumber]
    ) {
        var replica = Replica(life: life, position: snapshot.sequence)
        replica.version = inForce.version
        replica.texts = texts(of: snapshot, as: inForce.version)
        if let migrated = inForce.migrated {
            #expect(Digest(of: Self.encoded(replica.texts)) == migrated)
        }
        replica.skipped = Set(skipped)
        replicas[store] = replica
    }

    private func texts(of snapshot: Snapshot, as version: UInt32) -> [String] {
        let texts = Self.decoded(snapshot.state.bytes)
        return snapshot.schemaVersion < version ? texts + [migration ?? "migrated"] : texts
    }

    /// - Returns: What the machine is told about it; nothing if the migration hangs.
    func migrate(
        _ store: StoreName, life: SequenceNumber, _ snapshot: Snapshot, to version: UInt32
    ) -> [ReplicaInput] {
        guard migration != "hang" else { return [] }
        let outcome: Migrated.Outcome =
            migration == "throw"
            ? .failed("it threw")
            : .migrated(Digest(of: Self.encoded(texts(of: snapshot, as: version))))
        let place = SnapshotPlace(store: store, life: life, sequence: snapshot.sequence)
        let migrated = Migrated(place: place, schemaVersion: version, outcome: outcome)
        return [.reported(.migrated(migrated), resets: resets)]
    }

    /// - Parameters:
    ///   - commit: The commit.
    ///   - subjects: The subjects that catch up with it; nil for all that are attached.
    /// - Returns: What the machine is told about it.
    mutating func apply(_ commit: Commit, to subjects: [HostingSubject]? = nil) -> [ReplicaInput] {
        var sequence = commit.first
        var told: [ReplicaInput] = []
        let reached = replicas.filter { name, replica in
            guard let subjects else { return replica.isAttached }
            return replica.isBegun && !replica.isAttached && subjects.contains(.store(name))
        }.keys
        for block in commit.blocks {
            switch block {
            case .event(let event, _):
                for name in reached.sorted() where sequence > replicas[name]?.position ?? .zero {
                    told += apply(event, at: sequence, to: name)
                }
            case .batch(_, let batch):
                var number = sequence
                batch.forEachEntry { row, payload in
                    let text = String(decoding: payload, as: UTF8.self)
                    let target = batch.targets[row].target
                    for name in reached.sorted() where target.concerns(name) {
                        told += apply(text, target, at: number, to: name)
                    }
                    if case .state(let state) = target,
                        subjects?.contains(.state(state)) ?? attachedStates.contains(state)
                    {
                        bridgedTexts.append("\(number) \(state) \(text)")
                    }
                    number = number.next
                }
            }
            sequence = sequence.advanced(by: UInt64(block.count))
        }
        for name in reached {
            guard let position = replicas[name]?.position, position < commit.last else { continue }
            replicas[name]?.position = commit.last
        }
        return told
    }

    private mutating func apply(
        _ text: String, _ target: Target, at number: SequenceNumber, to name: StoreName
    ) -> [ReplicaInput] {
        guard var replica = replicas[name], number > replica.position, replica.stoppedAt == nil
        else { return [] }
        // Entries for a whole state don't reach a frozen store (rule 21).
        if case .state = target, replica.isFrozen { return [] }
        defer { replicas[name] = replica }
        if replica.skipped.contains(number) {
            replica.refusals.update(number.rawValue)
            return []
        }
        if poisons.contains(text) { return [stop(name, &replica, at: number)] }
        replica.texts.append(text)
        return []
    }

    private func stop(
        _ name: StoreName, _ replica: inout Replica, at number: SequenceNumber
    ) -> ReplicaInput {
        replica.stoppedAt = number
        return .reported(
            .stopped(StoppedStore(store: name, life: replica.life, sequence: number)),
            resets: resets)
    }

    private mutating func apply(
        _ event: LogEvent, at sequence: SequenceNumber, to name: StoreName
    ) -> [ReplicaInput] {
        guard var replica = replicas[name] else { return [] }
        switch event {
        case .dropped(name, replica.life):
            replicas[name] = nil
            wanted.remove(name)
            return [.close(.store(name))]
        case .skipped(let skipped, let target)
        where target.concerns(name) && replica.stoppedAt == skipped:
            replicas[name] = nil
            return [.reported(.reload(name), resets: resets)]
        default: break
        }
        guard replica.stoppedAt == nil else { return [] }
        defer { replicas[name] = replica }
        switch event {
        case .upgraded(name, replica.life, let version, _, _) where version > replica.version:
            guard version <= schemaVersion else { return [stop(name, &replica, at: sequence)] }
            replica.isAttached = false
            return [.reported(.reload(name), resets: resets)]
        case .frozen(name, replica.life, _): replica.isFrozen = true
        case .thawed(name, replica.life): replica.isFrozen = false
        case .digestPoint(name, replica.life):
            let vote = vote(name, &replica, at: sequence)
            return isVotingLate ? [] : [.reported(.digested(vote), resets: resets)]
        default: break
        }
        return []
    }

    private mutating func vote(
        _ name: StoreName, _ replica: inout Replica, at point: SequenceNumber
    ) -> Vote {
        let bytes = Self.encoded(replica.texts)
        replica.encodings = replica.encodings.suffix(1) + [(point, bytes)]
        let vote = Vote(
            place: SnapshotPlace(store: name, life: replica.life, sequence: point),
            schemaVersion: replica.version, digest: Digest(of: bytes),
            refusals: replica.refusals.finish(), byteCount: UInt64(bytes.count))
        replica.refusals = DigestHasher()
        if isVotingLate { heldVotes.append(vote) }
        return vote
    }

    private func encoding(of place: SnapshotPlace) -> [UInt8]? {
        guard let replica = replicas[place.store], replica.life == place.life else { return nil }
        return replica.encodings.first { $0.point == place.sequence }?.bytes
    }

    func give(_ request: SnapshotRequest) -> SnapshotChunk? {
        guard giving != .silence, giving != .lieThenSilence || request.offset == 0 else {
            return nil
        }
        guard giving != .nothing, var bytes = encoding(of: request.place) else {
            return .none(of: request.place)
        }
        if giving == .lies || giving == .lieThenSilence { bytes = bytes.map { _ in 0x20 } }
        if case .forged(let forged) = giving { bytes = forged }
        let limit = giving == .dribble ? 1 : Int(request.limitBytes)
        return SnapshotChunk(
            place: request.place, offset: request.offset, byteCount: UInt64(bytes.count),
            bytes: bytes[...].dropFirst(Int(request.offset)).prefix(limit))
    }

    /// - Returns: A report of the place where the lists differ.
    mutating func compare(_ divergence: Divergence, _ bytes: Bytes?) -> [ReplicaInput] {
        compared.append((divergence, bytes))
        defer { if divergence.mustReload { replicas[divergence.store] = nil } }
        guard let bytes, let own = encoding(of: divergence.place) else { return [] }
        let (left, right) = (Self.decoded(own), Self.decoded(bytes))
        let same = zip(left, right).prefix { $0 == $1 }.count
        guard same < max(left.count, right.count) else { return [] }
        let location = DigestReport.Location(place: divergence.place, path: "/\(same)")
        return [.reported(.located(location), resets: resets)]
    }
}
