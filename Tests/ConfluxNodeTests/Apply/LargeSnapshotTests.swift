import Conflux
import ConfluxVocabulary
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol

/// A snapshot that is decoded in the background, while other things happen to its store.
struct LargeSnapshotTests {
    private let setup: ApplierSetup
    private let name = StoreName(state: Name("tally")!, instance: .shared)

    init() throws {
        setup = try ApplierSetup(inPlaceBytesMax: 20)
    }

    private func restore(_ json: String, at sequence: UInt64, aside: Bytes? = nil) {
        setup.deliver(
            .restore(
                name, life: SequenceNumber(2),
                Snapshot(
                    sequence: SequenceNumber(sequence), schemaVersion: 1,
                    state: EncodedState(coding: .json, bytes: Array(json.utf8)[...])),
                aside: aside, skipped: [], through: SequenceNumber(sequence), request: sequence))
    }

    private func large(_ count: Int) -> String {
        "{\"count\":\(count)}" + String(repeating: " ", count: 30)
    }

    private var restored: [UInt64] {
        setup.reports.compactMap {
            if case .ready(_, through: _, let request) = $0 { request } else { nil }
        }
    }

    @Test func `a large snapshot is installed once it is decoded`() {
        restore(large(5), at: 7)
        #expect(setup.store.computed.count == 0)
        setup.workBehind()
        #expect(setup.store.computed.count == 5)
        #expect(restored.last == 7)
    }

    @Test func `a snapshot that is outdated by then is not installed`() {
        restore(large(5), at: 7)
        restore("{\"count\":6}", at: 8)
        setup.workBehind()
        #expect(setup.store.computed.count == 6)
        #expect(!restored.contains(7) && restored.last == 8)
    }

    @Test func `a failure of one server says nothing about the next one`() {
        restore(large(5) + "?", at: 7)
        restore("{\"count\":6}", at: 8)
        setup.workBehind()
        #expect(setup.applier.place(of: name)?.stopped == nil)
        #expect(restored.last == 8)
    }

    @Test func `entries kept aside after one snapshot are not given to a store with another`() {
        var aside = AsideEntries(name, life: SequenceNumber(2), after: SequenceNumber(7))
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(target: .store(name), schemaVersion: 1, coding: .json),
            payload: Array("{\"countOn\":{\"upTo\":10}}".utf8))
        aside.add(
            Commit(
                log: setup.log, epoch: Epoch(1), predecessor: Epoch(1), first: SequenceNumber(9),
                count: 1, timestamp: Timestamp(0),
                blocks: [.batch(Incarnation(9), builder.finish(firstCounter: 1, settled: 0))]))
        restore(large(5), at: 7, aside: aside.bytes[...])
        restore("{\"count\":6}", at: 8)
        setup.workBehind()
        #expect(setup.store.computed.count == 6)
        #expect(setup.applier.place(of: name)?.position == SequenceNumber(8))
    }
}
