import Conflux
import ConfluxHashing
import ConfluxVocabulary
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol

/// Entries that were declared to have no effect (rule 38), in the applying thread.
struct SkippedEntryTests {
    private let setup: ApplierSetup
    private let name = StoreName(state: Name("tally")!, instance: .shared)

    init() throws {
        setup = try ApplierSetup()
    }

    /// A commit of one action for the store, with this schema version.
    private func commit(
        at sequence: UInt64, schemaVersion: UInt32,
        _ payload: String = "{\"countOn\":{\"upTo\":10}}"
    ) -> Commit {
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(
                target: .store(name), schemaVersion: schemaVersion, coding: .json),
            payload: Array(payload.utf8))
        return commit(
            at: sequence,
            .batch(Incarnation(9), builder.finish(firstCounter: sequence, settled: 0)))
    }

    private func commit(at sequence: UInt64, _ block: Commit.Block) -> Commit {
        Commit(
            log: setup.log, epoch: Epoch(1), predecessor: Epoch(1),
            first: SequenceNumber(sequence), count: 1, timestamp: Timestamp(0), blocks: [block])
    }

    /// Gives the store its initial state, followed by the entries that were kept aside.
    private func restore(
        skipped: [SequenceNumber], aside: Bytes?, through: UInt64 = 2, snapshot: UInt64 = 2
    ) {
        let state = EncodedState(coding: .json, bytes: Array("{\"count\":0}".utf8)[...])
        setup.deliver(
            .restore(
                name, life: SequenceNumber(2),
                Snapshot(sequence: SequenceNumber(snapshot), schemaVersion: 1, state: state),
                in: VersionInForce(1), aside: aside, skipped: skipped,
                through: SequenceNumber(through),
                request: 7))
        setup.deliver(.begin(.store(name)))
        setup.deliver(.attach(.store(name)))
    }

    private var reloads: Int {
        setup.reports.count { if case .reload = $0 { true } else { false } }
    }

    private var votes: [Vote] {
        setup.reports.compactMap { if case .digested(let vote) = $0 { vote } else { nil } }
    }

    @Test func `a replica continues after a skipped entry that is newer than it`() {
        restore(skipped: [SequenceNumber(3)], aside: nil)
        setup.deliver(.commit(commit(at: 3, schemaVersion: 2), byteCount: 100))
        setup.deliver(.commit(commit(at: 4, schemaVersion: 1), byteCount: 100))
        #expect(setup.store.computed.count == 1)
        // Any other entry that is newer than the replica stops it.
        setup.deliver(.commit(commit(at: 5, schemaVersion: 2), byteCount: 100))
        setup.deliver(.commit(commit(at: 6, schemaVersion: 1), byteCount: 100))
        #expect(setup.store.computed.count == 1)
    }

    @Test func `a replica that an upgrade stops has not come to the upgrade`() throws {
        let upgrade = LogEvent.upgraded(
            name, life: SequenceNumber(2), schemaVersion: 2, base: SequenceNumber(2), digest: nil)
        setup.deliver(.commit(commit(at: 3, .event(upgrade)), byteCount: 100))
        let place = try #require(setup.applier.place(of: name))
        #expect(place.stopped != nil)
        #expect(place.position == SequenceNumber(2))
        #expect(setup.store.version.sequence == SequenceNumber(2))
    }

    @Test func `a store that begins anew has not come to what made it`() throws {
        // Two actions in one commit, and that the first one has no effect.
        let actions =
            commit(at: 3, schemaVersion: 1).blocks + commit(at: 4, schemaVersion: 1).blocks
        let event = LogEvent.skipped(SequenceNumber(3), .store(name))
        setup.deliver(
            .commit(
                Commit(
                    log: setup.log, epoch: Epoch(1), predecessor: Epoch(1),
                    first: SequenceNumber(3), count: 3, timestamp: Timestamp(0),
                    blocks: actions + [.event(event)]), byteCount: 100))
        #expect(reloads == 1)
        #expect(setup.store.computed.count == 2)
        // A condition on 5 would hold, and the state is that of 4.
        #expect(setup.store.version.sequence == SequenceNumber(4))
        restore(skipped: [SequenceNumber(3)], aside: nil, through: 5, snapshot: 5)
        #expect(setup.store.version.sequence == SequenceNumber(5))
    }

    @Test func `an entry kept aside together with its skip has no effect`()
        throws
    {
        var aside = AsideEntries(name, life: SequenceNumber(2), after: SequenceNumber(2))
        aside.add(commit(at: 3, schemaVersion: 1))
        aside.add(commit(at: 4, schemaVersion: 1))
        aside.add(commit(at: 5, .event(.skipped(SequenceNumber(3), .store(name)))))
        restore(skipped: [], aside: aside.bytes[...], through: 5)
        #expect(setup.store.computed.count == 1)
        let effect = try setup.progress(of: name).effect(of: SequenceNumber(3))
        guard case .refused = effect else {
            Issue.record("\(effect)")
            return
        }
        #expect(reloads == 0)
    }

    @Test func `a store that has applied a skipped entry does not vote until it reloads`()
        throws
    {
        let life = SequenceNumber(2)
        restore(skipped: [], aside: nil)
        setup.deliver(.commit(commit(at: 3, schemaVersion: 1), byteCount: 100))
        setup.deliver(
            .commit(
                commit(at: 4, .event(.skipped(SequenceNumber(3), .store(name)))), byteCount: 100))
        #expect(reloads == 1)
        setup.deliver(
            .commit(commit(at: 5, .event(.digestPoint(name, life: life))), byteCount: 100))
        setup.deliver(.commit(commit(at: 6, schemaVersion: 1), byteCount: 100))
        setup.workBehind()
        #expect(votes.isEmpty)
        #expect(setup.store.computed.count == 1)
        restore(skipped: [SequenceNumber(3)], aside: nil)
        setup.deliver(.commit(commit(at: 7, schemaVersion: 1), byteCount: 100))
        #expect(setup.store.computed.count == 1)
        #expect(reloads == 1)
    }

    @Test func `a store whose snapshot has a skipped entry in it begins anew`() {
        restore(skipped: [], aside: nil, through: 4, snapshot: 4)
        func skip(_ skipped: UInt64, at sequence: UInt64) {
            let event = LogEvent.skipped(SequenceNumber(skipped), .store(name))
            setup.deliver(.commit(commit(at: sequence, .event(event)), byteCount: 100))
        }
        // The life begins with 2, so this entry is not of it.
        skip(1, at: 5)
        #expect(reloads == 0)
        skip(3, at: 6)
        #expect(reloads == 1)
        setup.deliver(.commit(commit(at: 7, schemaVersion: 1), byteCount: 100))
        #expect(setup.store.computed.count == 0)
    }

    @Test func `a store that must load the others' state continues only with it`() {
        let life = SequenceNumber(2)
        restore(skipped: [], aside: nil)
        let point = SnapshotReference(
            sequence: SequenceNumber(3), schemaVersion: 1, digest: Digest(of: [0]), byteCount: 1)
        setup.deliver(
            .compare(
                Divergence(
                    store: name, life: life, lastEqual: life, reference: point, isMajority: true,
                    mustReload: true), nil))
        setup.deliver(.commit(commit(at: 4, schemaVersion: 1), byteCount: 100))
        #expect(setup.store.computed.count == 0)
    }

    @Test func `refusals before a digest point that is kept aside no longer count`() throws {
        let life = SequenceNumber(2)
        var aside = AsideEntries(name, life: life, after: life)
        aside.add(commit(at: 3, schemaVersion: 1, "{\"fail\":{}}"))
        aside.add(commit(at: 4, .event(.digestPoint(name, life: life))))
        restore(skipped: [], aside: aside.bytes[...], through: 4)
        // A replica that was there at the first point has counted from that point.
        setup.deliver(
            .commit(commit(at: 5, .event(.digestPoint(name, life: life))), byteCount: 100))
        #expect(votes.last?.place.sequence == SequenceNumber(5))
        #expect(votes.last?.refusals == DigestHasher().finish())
    }

    @Test func `a digest point that passes again for another store is not voted on again`() {
        let life = SequenceNumber(2)
        let refused = commit(at: 3, schemaVersion: 1, "{\"fail\":{}}")
        let point = commit(at: 4, .event(.digestPoint(name, life: life)))
        setup.restore(
            name, life: life, EncodedState(coding: .json, bytes: Array("{\"count\":0}".utf8)[...]))
        setup.deliver(.catchUp(refused, byteCount: 100, to: [.store(name)]))
        setup.deliver(.catchUp(point, byteCount: 100, to: [.store(name)]))
        setup.deliver(
            .catchUp(
                commit(at: 5, schemaVersion: 1, "{\"fail\":{}}"), byteCount: 100,
                to: [.store(name)]))
        // Another store starts, so all entries come once more.
        setup.deliver(.catchUp(refused, byteCount: 100, to: [.store(name)]))
        setup.deliver(.catchUp(point, byteCount: 100, to: [.store(name)]))
        setup.workBehind()
        #expect(votes.map(\.place.sequence) == [SequenceNumber(4)])
        setup.deliver(
            .catchUp(
                commit(at: 6, .event(.digestPoint(name, life: life))), byteCount: 100,
                to: [.store(name)]))
        setup.workBehind()
        var refusals = DigestHasher()
        refusals.update(UInt64(5))
        #expect(votes.last?.place.sequence == SequenceNumber(6))
        #expect(votes.last?.refusals == refusals.finish())
    }
}
