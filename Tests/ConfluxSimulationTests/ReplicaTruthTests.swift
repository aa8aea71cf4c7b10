import Conflux
import ConfluxHashing
import ConfluxLog
import ConfluxVocabulary
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol
@testable import ConfluxSimulation

/// What the checks consider to be a store's history is what a replica makes of the same entries.
struct ReplicaTruthTests {
    private static let state = SimulatedState.model(SimulationTests.Stock.self) { _ in
        .add(amount: 1)
    }
    private static let stores = state.stores
    private static let initial = EncodedState(
        coding: .json, bytes: Array("{\"left\":0}".utf8)[...])

    /// The replicas of one node, without a network.
    private final class Replicas {
        let scope = Scope()
        let applier: Applier
        let stores: [any SimulatedStore]
        private let log: LogID
        private let outbox = Outbox(
            bytesMax: 1 << 20, policy: .fail, limits: .standard, wake: {}, withdrawSent: { _, _ in }
        )

        init(_ log: LogID, without skipped: [(SequenceNumber, Target)], isLate: Bool) {
            self.log = log
            let applier = Applier(
                refusalBytesMax: 1 << 20, tell: { _ in }, post: { _ in }, clock: { .zero })
            self.applier = applier
            stores = ReplicaTruthTests.stores.map { [scope, outbox] in
                ReplicaTruthTests.state.host($0, scope, outbox, nil)
            }
            for (index, store) in stores.enumerated() {
                let life = SequenceNumber(UInt64(index) + 1)
                applier.perform(
                    .register(
                        store.open(
                            request: UInt64(index), scope: scope, payloadBytesMax: 1_024,
                            policy: .whenAllUnderstand,
                            completion: { _ in }, lost: { _ in })))
                deliver(
                    .restore(
                        store.name, life: life,
                        Snapshot(sequence: life, schemaVersion: 1, state: initial),
                        in: VersionInForce(1), aside: nil,
                        skipped: skipped.filter { $0.1.concerns(store.name) }.map(\.0),
                        through: life, request: UInt64(index) + 1))
                deliver(.begin(.store(store.name)))
                if !isLate { deliver(.attach(.store(store.name))) }
            }
        }

        func deliver(_ delivery: Delivery) {
            scope.run { applier.perform(.deliver(delivery, log: log, epoch: Epoch(1))) }
        }
    }

    /// Draws a random log in which both stores are created.
    private struct Author {
        let log: LogID
        var random: SimulationRandom
        var frozen: Set<StoreName> = []
        var skipped: [(SequenceNumber, Target)] = []
        var records: [DispatchRecord] = []
        var commits: [Commit] = []

        private var last: SequenceNumber { commits.last?.last ?? .zero }

        mutating func commit(_ blocks: [Commit.Block]) throws -> LoggedCommit {
            var builder = CommitBuilder(
                log: log, epoch: Epoch(1), predecessor: commits.isEmpty ? .none : Epoch(1),
                first: last.next)
            for block in blocks {
                switch block {
                case .batch(let incarnation, let batch): builder.append(batch, from: incarnation)
                case .event(let event, _): builder.append(event)
                }
            }
            let body = builder.finish(timestamp: Timestamp(0)).dropFirst(Frame.size)
            let commit = try Commit.decode(body: body)
            commits.append(commit)
            return LoggedCommit(
                first: commit.first, last: commit.last, epoch: commit.epoch, bytes: body)
        }

        mutating func begin() throws -> LoggedCommit {
            try commit(
                ReplicaTruthTests.stores.map {
                    .event(.created($0, schemaVersion: 1, initial: initial))
                })
        }

        /// Appends batches, and events about the stores.
        mutating func next() throws -> LoggedCommit {
            try commit(
                (0..<random.int(in: 1...4)).map { _ in
                    random.chance(0.8) ? batch() : .event(word())
                })
        }

        private mutating func batch() -> Commit.Block {
            var builder = BatchBuilder()
            let first = UInt64(records.count) + 1
            for _ in 0..<random.int(in: 1...5) {
                let open = ReplicaTruthTests.stores.filter { !frozen.contains($0) }
                let target: Target =
                    open.isEmpty || random.chance(0.4)
                    ? .state(ReplicaTruthTests.state.name) : .store(random.pick(open))
                let amount = random.int(in: 1...9)
                let payload =
                    random.chance(0.1)
                    ? "{}" : "{\"\(random.chance(0.5) ? "add" : "take")\":{\"amount\":\(amount)}}"
                let block = OutcomeBlock()
                _ = block.reserve()
                let record = DispatchRecord(
                    process: 1, index: records.count, handle: DispatchHandle(block: block, index: 0)
                )
                record.payload = Array(payload.utf8)
                record.target = target
                records.append(record)
                builder.append(
                    target: BatchTarget(target: target, schemaVersion: 1, coding: .json),
                    payload: Array(payload.utf8))
            }
            return .batch(Incarnation(1), builder.finish(firstCounter: first, settled: 0))
        }

        private mutating func word() -> LogEvent {
            let index = random.int(in: 0...ReplicaTruthTests.stores.count - 1)
            let (store, life) = (ReplicaTruthTests.stores[index], SequenceNumber(UInt64(index) + 1))
            if random.chance(0.3), last > SequenceNumber(2) {
                let sequence = SequenceNumber(UInt64(random.int(in: 3...Int(last.rawValue))))
                let target: Target = random.chance(0.5) ? .store(store) : .state(store.state)
                skipped.append((sequence, target))
                return .skipped(sequence, target)
            }
            if frozen.remove(store) != nil { return .thawed(store, life: life) }
            frozen.insert(store)
            return .frozen(store, life: life, reason: .asked)
        }
    }

    private func check(
        _ replicas: Replicas, _ branch: Branch, from first: SequenceNumber,
        through last: SequenceNumber, _ comment: Comment
    ) throws {
        for store in replicas.stores {
            let place = try #require(replicas.applier.place(of: store.name))
            let history = try #require(branch.history(of: store.name, life: place.life))
            #expect(
                history.isRight(Digest(of: store.encoded), of: 1, at: place.position), comment)
        }
        for number in first.rawValue...last.rawValue {
            let sequence = SequenceNumber(number)
            guard let fact = branch.fact(sequence), !fact.concerned.isEmpty else { continue }
            let effect = fact.concerned.reduce(Effect.nobody) { effect, concerned in
                let progress = replicas.applier.progress(of: .store(concerned.0))
                return progress.map { .merged(effect, $0.effect(of: sequence)) } ?? effect
            }
            let isRefused = if case .refused = effect { true } else { false }
            let stores = fact.concerned.compactMap { branch.history(of: $0, life: $1) }
            let mayBe =
                isRefused
                ? stores.allSatisfy { $0.mayHave(sequence, refused: true) }
                : stores.contains { $0.mayHave(sequence, refused: false) }
            #expect(mayBe, "\(comment), entry \(number)")
        }
    }

    @Test(arguments: UInt64(1)...40)
    func `a replica matches the truth, whatever is in the log`(seed: UInt64) throws {
        let log = LogID.random()
        var author = Author(log: log, random: SimulationRandom(seed: seed))
        let branch = Branch(log: log, states: [Self.state.name: Self.state]) { _, _, _ in nil }
        func append(_ commit: LoggedCommit) throws {
            try branch.append(commit) { author.records[Int($1.counter) - 1] }
        }
        try append(author.begin())
        let follower = Replicas(log, without: [], isLate: false)
        for _ in 0..<40 {
            try append(author.next())
            let commit = try #require(author.commits.last)
            // A replica that has applied a skipped entry does not have to match the truth.
            guard author.skipped.isEmpty else { continue }
            follower.deliver(.commit(commit, byteCount: 100))
            try check(
                follower, branch, from: commit.first, through: commit.last, "seed \(seed)")
        }
        let newcomer = Replicas(log, without: author.skipped, isLate: true)
        for commit in author.commits.dropFirst() {
            newcomer.deliver(
                .catchUp(
                    commit, byteCount: 100, to: newcomer.stores.map { .store($0.name) }))
        }
        for store in newcomer.stores { newcomer.deliver(.attach(.store(store.name))) }
        try check(
            newcomer, branch, from: SequenceNumber(3), through: branch.last,
            "seed \(seed), a newcomer")
    }
}
