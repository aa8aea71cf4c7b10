import Conflux
import ConfluxVocabulary
import Synchronization
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol

/// Entries of one batch that several threads decode.
struct SharedDecodingTests {
    private let name = StoreName(state: Name("tally")!, instance: .shared)
    private let count = 200

    /// Delivers a commit of a batch, whose entries are these targets and payloads. The first has number 3.
    private func deliver(
        _ entries: [(StoreName, String)], schemaVersion: UInt32 = 1, to setup: ApplierSetup
    ) {
        var builder = BatchBuilder()
        for (store, payload) in entries {
            builder.append(
                target: BatchTarget(
                    target: .store(store), schemaVersion: schemaVersion, coding: .json),
                payload: Array(payload.utf8))
        }
        setup.deliver(
            .commit(
                Commit(
                    log: setup.log, epoch: Epoch(1), predecessor: Epoch(1),
                    first: SequenceNumber(3), count: UInt32(entries.count),
                    timestamp: Timestamp(0),
                    blocks: [
                        .batch(Incarnation(9), builder.finish(firstCounter: 1, settled: 0))
                    ]), byteCount: 10_000))
    }

    private func add(_ amount: Int) -> String { "{\"add\":{\"_0\":\(amount)}}" }

    private func isRefused(_ index: Int, in setup: ApplierSetup) throws -> Bool {
        let sequence = SequenceNumber(3 + UInt64(index))
        switch try setup.progress(of: name).effect(of: sequence) {
        case .refused: return true
        case .applied: return false
        default:
            Issue.record("the effect of \(sequence) is unknown")
            return false
        }
    }

    @Test(arguments: [[], [0], [1], [15, 16], [17, 150], [199], Array(0..<200)])
    func `all are applied in their order, except those that can't be decoded`(
        broken: [Int]
    ) throws {
        let setup = try ApplierSetup()
        let seen = Mutex<[Int]>([])
        let observation = setup.store.computed.counts.observe { count in
            seen.withLock { $0.append(count) }
        }
        defer { observation.dispose() }
        deliver(
            (0..<count).map { (name, broken.contains($0) ? "{\"unknown\":{}}" : add($0 + 1)) },
            to: setup)
        var counts = [0]
        for index in 0..<count where !broken.contains(index) {
            counts.append(counts[counts.count - 1] + index + 1)
        }
        #expect(seen.withLock { $0 } == counts)
        for index in 0..<count {
            #expect(try isRefused(index, in: setup) == broken.contains(index), "\(index)")
        }
    }

    @Test func `each store gets its own entries, even if runs of them alternate`() throws {
        let setup = try ApplierSetup()
        let otherName = StoreName(state: name.state, instance: try #require(Name("other")))
        let other = setup.register(otherName)
        setup.restore(otherName, life: SequenceNumber(2), ApplierSetup.state(0))
        setup.deliver(.attach(.store(otherName)))
        setup.deliver(.opened(request: 2, .opened(life: SequenceNumber(2))))
        let isOther = (0..<count).map { (40..<45).contains($0) || (60..<120).contains($0) }
        deliver((0..<count).map { (isOther[$0] ? otherName : name, add($0)) }, to: setup)
        let sums = [true, false].map { wanted in
            (0..<count).reduce(0) { $0 + (isOther[$1] == wanted ? $1 : 0) }
        }
        #expect([other.computed.count, setup.store.computed.count] == sums)
        for index in 0..<count where !isOther[index] {
            #expect(try !isRefused(index, in: setup))
        }
    }

    @Test func `entries that the store has already are not applied again`() throws {
        let setup = try ApplierSetup()
        deliver((0..<count).map { _ in (name, add(1)) }, to: setup)
        deliver((0..<count).map { _ in (name, add(1)) }, to: setup)
        #expect(setup.store.computed.count == count)
    }

    @Test func `entries of a newer program stop the store, although they can be decoded`() throws {
        let setup = try ApplierSetup()
        deliver((0..<count).map { _ in (name, add(1)) }, schemaVersion: 2, to: setup)
        #expect(setup.store.computed.count == 0)
        #expect(try setup.progress(of: name).stop?.at == SequenceNumber(3))
    }
}
