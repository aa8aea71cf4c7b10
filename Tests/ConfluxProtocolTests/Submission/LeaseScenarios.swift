import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Leases in the log (rule 42).
struct LeaseScenarios {
    private let name = StoreName("cashier")!

    private func submit(_ request: LeaseRequest, from node: Int, in cluster: inout Cluster) {
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(target: .leases, schemaVersion: 1, coding: .compact),
            payload: request.payload)
        cluster.dispatch(&builder, from: node, isAtomic: true)
        cluster.run()
    }

    /// Dispatches a text to `list/shared` under a claim.
    private func dispatch(
        _ text: String, under claim: StoreVersion, from node: Int, isAtomic: Bool = true,
        in cluster: inout Cluster
    ) {
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(target: Target("list")!, schemaVersion: 1, coding: .json),
            payload: Array(text.utf8))
        #expect(builder.row(for: .lease(claim)) != nil)
        cluster.dispatch(&builder, from: node, isAtomic: isAtomic)
        cluster.run()
    }

    /// The claim that is an action of a node.
    private func claim(_ counter: UInt64, of node: Int, in cluster: Cluster) throws -> StoreVersion
    {
        guard case .committed(_, let number, let epoch, _)? = cluster.nodes[node]?.outcomes[counter]
        else { throw NoClaim() }
        return StoreVersion(sequence: number, epoch: epoch)
    }

    private struct NoClaim: Error {}

    private func rejection(_ counter: UInt64, of node: Int, in cluster: Cluster) -> RejectionCode? {
        guard case .rejected(let code, _)? = cluster.nodes[node]?.outcomes[counter] else {
            return nil
        }
        return code
    }

    private func isHeld(_ claim: StoreVersion, in cluster: Cluster) -> Bool {
        cluster.sequencer?.leases.isHeld(claim.sequence) == true
    }

    private func ask(
        _ claim: StoreVersion, untilHeld: Bool = false, number: UInt64, from node: Int,
        in cluster: inout Cluster
    ) {
        let question = Question(
            number: number, patience: .seconds(30), body: .lease(claim, untilHeld: untilHeld))
        cluster.input(.ask(question), to: node)
        cluster.run()
    }

    private func answers(of node: Int, in cluster: Cluster) -> [Answer.Body] {
        cluster.nodes[node]?.answers.map(\.body) ?? []
    }

    private let held = Answer.Body.lease(.held(silenceMax: .seconds(10)))

    @Test func `a lease is held by one claim at a time, in the order of the claims`() throws {
        var cluster = Cluster.twoNodes()
        submit(.claim(name, locks: false), from: 1, in: &cluster)
        submit(.claim(name, locks: false), from: 2, in: &cluster)
        let (first, second) = (
            try claim(1, of: 1, in: cluster), try claim(1, of: 2, in: cluster)
        )
        #expect(isHeld(first, in: cluster) && !isHeld(second, in: cluster))
        ask(first, untilHeld: true, number: 1, from: 1, in: &cluster)
        ask(second, number: 2, from: 2, in: &cluster)
        ask(second, untilHeld: true, number: 3, from: 2, in: &cluster)
        #expect(answers(of: 1, in: cluster) == [held])
        #expect(answers(of: 2, in: cluster) == [.lease(.waiting)])
        dispatch("a", under: first, from: 1, in: &cluster)
        dispatch("b", under: second, from: 2, in: &cluster)
        #expect(rejection(2, of: 2, in: cluster) == .leaseLost)
        // Another session can't release it.
        submit(.release(first), from: 2, in: &cluster)
        #expect(rejection(3, of: 2, in: cluster) == nil, "without keys, everybody administers")
        #expect(isHeld(second, in: cluster))
        #expect(answers(of: 2, in: cluster).last == held)
        dispatch("c", under: first, from: 1, in: &cluster)
        #expect(rejection(3, of: 1, in: cluster) == .leaseLost)
        dispatch("d", under: second, from: 2, in: &cluster)
        #expect(cluster.nodes[1]?.texts(of: "list") == ["a", "d"])
        ask(first, number: 4, from: 1, in: &cluster)
        #expect(answers(of: 1, in: cluster).last == .lease(.over))
    }

    @Test func `a lease passes on when its session falls silent, and late actions are rejected`()
        throws
    {
        var cluster = Cluster.twoNodes()
        submit(.claim(name, locks: false), from: 1, in: &cluster)
        submit(.claim(name, locks: false), from: 2, in: &cluster)
        let (first, second) = (
            try claim(1, of: 1, in: cluster), try claim(1, of: 2, in: cluster)
        )
        ask(second, untilHeld: true, number: 1, from: 2, in: &cluster)
        cluster.disconnect(1)
        cluster.pass(.seconds(8))
        #expect(isHeld(first, in: cluster))
        cluster.pass(.seconds(8))
        #expect(isHeld(second, in: cluster))
        #expect(answers(of: 2, in: cluster) == [held])
        cluster.reconnect(1)
        cluster.pass(.seconds(1))
        dispatch("late", under: first, from: 1, in: &cluster)
        cluster.pass(.seconds(1))
        #expect(rejection(2, of: 1, in: cluster) == .leaseLost)
        #expect(cluster.nodes[2]?.texts(of: "list") == [])
    }

    @Test func `a batch has no more claims than there is room for`() {
        var cluster = Cluster.twoNodes()
        for (count, code) in [(10_001, RejectionCode.tableFull), (10_000, nil)] {
            var builder = BatchBuilder()
            let row = BatchTarget(target: .leases, schemaVersion: 1, coding: .compact)
            for _ in 0..<count {
                builder.append(target: row, payload: LeaseRequest.claim(name, locks: false).payload)
            }
            let counter = (cluster.nodes[1]?.outcomes.count).map { UInt64($0) + 1 } ?? 1
            cluster.dispatch(&builder, from: 1, isAtomic: true)
            cluster.run()
            #expect(rejection(counter, of: 1, in: cluster) == code)
        }
        #expect(cluster.sequencer?.leases.claims.count == 10_000)
    }

    @Test func `a lease is told to be held only once the log has what gives it`() throws {
        var cluster = Cluster.twoNodes()
        submit(.claim(name, locks: false), from: 1, in: &cluster)
        submit(.claim(name, locks: false), from: 2, in: &cluster)
        let (first, second) = (
            try claim(1, of: 1, in: cluster), try claim(1, of: 2, in: cluster)
        )
        ask(second, untilHeld: true, number: 1, from: 2, in: &cluster)
        cluster.isDiskSlow = true
        submit(.release(first), from: 1, in: &cluster)
        ask(second, untilHeld: true, number: 2, from: 2, in: &cluster)
        #expect(answers(of: 2, in: cluster).isEmpty)
        // From here on, nothing under the first claim is taken.
        dispatch("late", under: first, from: 1, in: &cluster)
        cluster.isDiskSlow = false
        cluster.finishAppends()
        cluster.run()
        #expect(answers(of: 2, in: cluster) == [held])
        #expect(cluster.nodes[2]?.answers.map(\.number) == [2])
        #expect(rejection(3, of: 1, in: cluster) == .leaseLost)
    }

    @Test func `a sequencer says that a lease is held only if the log confirms its term`() throws {
        var cluster = Cluster.twoNodes()
        submit(.claim(name, locks: false), from: 1, in: &cluster)
        let first = try claim(1, of: 1, in: cluster)
        cluster.isConfirmSlow = true
        ask(first, number: 1, from: 1, in: &cluster)
        // This one replaces it, and comes after the confirmation has begun.
        ask(first, number: 2, from: 1, in: &cluster)
        cluster.answerConfirm()
        cluster.run()
        #expect(answers(of: 1, in: cluster).isEmpty)
        cluster.answerConfirm()
        cluster.run()
        #expect(answers(of: 1, in: cluster) == [held])
        #expect(cluster.nodes[1]?.answers.map(\.number) == [2])
        // Nobody else is told how it stands.
        ask(first, number: 3, from: 2, in: &cluster)
        #expect(answers(of: 2, in: cluster) == [.lease(.over)])
    }

    @Test func `leases outlive a restart of the sequencer, and are in its checkpoints`() throws {
        var cluster = Cluster.twoNodes()
        submit(.claim(name, locks: false), from: 1, in: &cluster)
        submit(.claim(name, locks: false), from: 2, in: &cluster)
        let first = try claim(1, of: 1, in: cluster)
        cluster.restartSequencer()
        cluster.pass(.seconds(5))
        #expect(isHeld(first, in: cluster))
        dispatch("a", under: first, from: 1, in: &cluster)
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[2]?.texts(of: "list") == ["a"])
        var state = LogState(log: cluster.disk.id)
        for body in cluster.disk.bodies {
            try state.apply(Commit.decode(body: body.body), byteCount: body.body.count)
        }
        #expect(state.leases.claims.count == 2)
        #expect(try LogState(checkpoint: state.encoded()[...]) == state)
    }

    @Test func `a claim of a lost history holds nothing`() throws {
        var cluster = Cluster.twoNodes()
        cluster.restartSequencer()
        cluster.pass(.seconds(1))
        submit(.claim(name, locks: false), from: 1, in: &cluster)
        let first = try claim(1, of: 1, in: cluster)
        let foreign = StoreVersion(sequence: first.sequence, epoch: Epoch(first.epoch.rawValue - 1))
        dispatch("a", under: foreign, from: 1, in: &cluster)
        #expect(rejection(2, of: 1, in: cluster) == .leaseLost)
        submit(.release(foreign), from: 1, in: &cluster)
        #expect(rejection(3, of: 1, in: cluster) == .leaseLost)
        ask(foreign, number: 1, from: 1, in: &cluster)
        #expect(answers(of: 1, in: cluster) == [.lease(.over)])
        #expect(isHeld(first, in: cluster))
    }

    @Test func `a claim needs the right to dispatch to its name, and has a share`() throws {
        var cluster = Cluster.twoNodes()
        cluster.principals[1] = Principal(
            name: Name("writer"),
            rights: Rights(patterns: [.dispatch: [StorePattern("list")!], .host: [.all]]))
        submit(.claim(name, locks: false), from: 1, in: &cluster)
        #expect(rejection(1, of: 1, in: cluster) == .notAllowed)
        submit(.claim(name, locks: false), from: 2, in: &cluster)
        submit(.release(try claim(1, of: 2, in: cluster)), from: 1, in: &cluster)
        #expect(rejection(2, of: 1, in: cluster) == .notAllowed)
        // A lease is needed as a whole, or not at all.
        dispatch(
            "a", under: try claim(1, of: 2, in: cluster), from: 1, isAtomic: false, in: &cluster)
        #expect(rejection(3, of: 1, in: cluster) == .malformed)
        var table = LeaseTable()
        for number in 1...UInt64(LeaseTable.countMax / 2) {
            table.add(
                LeaseTable.Claim(
                    number: SequenceNumber(number), name: name, session: Incarnation(number % 9),
                    owner: Name("writer"), locks: false))
        }
        #expect(!table.hasRoom(for: Name("writer")) && table.hasRoom(for: Name("other")))
        try table.checkInvariants()
        table.end(claimsOf: Incarnation(3), at: SequenceNumber(99_999))
        try table.checkInvariants()
        #expect(table.isHeld(SequenceNumber(1)))
    }

    @Test func `while a store is locked, others' actions wait, and are rejected in the end`() throws
    {
        var cluster = Cluster.twoNodes()
        cluster.open("other", on: 2)
        submit(.claim(StoreName("list")!, locks: true), from: 1, in: &cluster)
        let lock = try claim(1, of: 1, in: cluster)
        cluster.dispatch(["mine"], to: "list/shared", from: 1)
        cluster.dispatch(["theirs"], to: "list/shared", from: 2)
        cluster.dispatch(["x"], to: "other/shared", from: 2)
        cluster.pass(.seconds(2))
        #expect(cluster.nodes[2]?.texts(of: "list") == ["mine"])
        #expect(cluster.nodes[2]?.texts(of: "other") == [])
        #expect(
            cluster.nodes[2]?.events.contains {
                if case .heldUp(let message) = $0 {
                    message.contains("locked by the node alpha")
                } else {
                    false
                }
            } == true)
        submit(.release(lock), from: 1, in: &cluster)
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[2]?.texts(of: "list") == ["mine", "theirs"])
        #expect(cluster.nodes[2]?.texts(of: "other") == ["x"])
        // This time, the lock lasts.
        submit(.claim(StoreName("list")!, locks: true), from: 1, in: &cluster)
        cluster.dispatch(["late"], to: "list/*", from: 2)
        cluster.dispatch(["y"], to: "other/shared", from: 2)
        cluster.pass(.seconds(12))
        #expect(rejection(3, of: 2, in: cluster) == .locked)
        #expect(cluster.nodes[2]?.texts(of: "other") == ["x", "y"])
    }

    @Test func `a lock that passes from claim to claim keeps nobody waiting for ever`() throws {
        var cluster = Cluster.twoNodes()
        cluster.open("other", on: 2)
        let list = StoreName("list")!
        for name in [list, StoreName("other")!] {
            submit(.claim(name, locks: true), from: 1, in: &cluster)
        }
        var builder = BatchBuilder()
        for name in ["list", "other"] {
            builder.append(
                target: BatchTarget(target: Target(name)!, schemaVersion: 1, coding: .json),
                payload: Array("both".utf8))
        }
        cluster.dispatch(&builder, from: 2, isAtomic: true)
        for counter: UInt64 in 1...4 {
            submit(.claim(list, locks: true), from: 1, in: &cluster)
            cluster.pass(.milliseconds(2_900))
            #expect(cluster.nodes[2]?.outcomes.isEmpty == (counter < 4))
            let present = try #require(
                cluster.sequencer?.leases.claims.values.first {
                    $0.name == list && isHeld(StoreVersion(sequence: $0.number), in: cluster)
                })
            submit(.release(StoreVersion(sequence: present.number)), from: 1, in: &cluster)
        }
        #expect(rejection(1, of: 2, in: cluster) == .locked)
    }

    @Test func `a batch that rarely comes again does not wait for a lock for ever`() throws {
        var cluster = Cluster()
        // Shorter than the pause after which a node sends a batch again.
        cluster.settings.lockPatience = .milliseconds(10)
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        cluster.addNode(2, named: "beta", store: "list")
        submit(.claim(StoreName("list")!, locks: true), from: 1, in: &cluster)
        cluster.dispatch(["late"], to: "list/shared", from: 2)
        cluster.pass(.seconds(5))
        #expect(rejection(1, of: 2, in: cluster) == .locked)
    }

    @Test func `a sequencer that was stopped takes nobody's lease`() throws {
        var cluster = Cluster.twoNodes()
        submit(.claim(name, locks: false), from: 1, in: &cluster)
        let lease = try claim(1, of: 1, in: cluster)
        cluster.pass(.seconds(5))
        // What the nodes have sent meanwhile is read after the tick.
        cluster.now += .seconds(30)
        cluster.tick()
        cluster.pass(.seconds(5))
        #expect(isHeld(lease, in: cluster))
    }

    @Test func `a lock lets pass what is sent under it, and keeps timers waiting`() throws {
        var cluster = Cluster.twoNodes()
        var actions = BatchBuilder()
        actions.append(
            target: BatchTarget(target: Target("list")!, schemaVersion: 1, coding: .json),
            payload: Array("timer".utf8))
        let order = TimerOrder(
            key: nil, due: .after(.seconds(1)), interval: nil,
            actions: actions.finish(firstCounter: 1, settled: 0))
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(target: .timers, schemaVersion: 1, coding: .compact),
            payload: TimerRequest.set(order).payload)
        cluster.dispatch(&builder, from: 2, isAtomic: true)
        submit(.claim(StoreName("list")!, locks: true), from: 1, in: &cluster)
        let lock = try claim(1, of: 1, in: cluster)
        dispatch("a", under: lock, from: 2, in: &cluster)
        cluster.pass(.seconds(3))
        #expect(cluster.nodes[1]?.texts(of: "list") == ["a"])
        submit(.release(lock), from: 1, in: &cluster)
        cluster.pass(.seconds(1))
        #expect(cluster.nodes[1]?.texts(of: "list") == ["a", "timer"])
        // Who may only dispatch may not make hosts wait.
        cluster.principals[2] = Principal(
            name: Name("writer"), rights: Rights(patterns: [.dispatch: [.all]]))
        submit(.claim(StoreName("list")!, locks: true), from: 2, in: &cluster)
        #expect(rejection(3, of: 2, in: cluster) == .notAllowed)
    }
}
