import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Timers in the log (rule 26).
struct TimerScenarios {
    private let list = Target("list")!

    /// Sets a timer that dispatches a text to `list/shared`, or to another target.
    private func set(
        _ text: String, _ due: TimerOrder.Due, every interval: Duration? = nil,
        key: String? = nil, to target: String = "list", isAtomic: Bool = true, from node: Int = 1,
        in cluster: inout Cluster
    ) {
        var actions = BatchBuilder()
        actions.append(
            target: BatchTarget(target: Target(target)!, schemaVersion: 1, coding: .json),
            payload: Array(text.utf8))
        let order = TimerOrder(
            key: key, due: due, interval: interval,
            actions: actions.finish(firstCounter: 1, settled: 0))
        submit(.set(order), isAtomic: isAtomic, from: node, in: &cluster)
    }

    private func submit(
        _ request: TimerRequest, isAtomic: Bool = true, from node: Int = 1,
        in cluster: inout Cluster
    ) {
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(target: .timers, schemaVersion: 1, coding: .compact),
            payload: request.payload)
        cluster.dispatch(&builder, from: node, isAtomic: isAtomic)
        cluster.run()
    }

    private func texts(_ cluster: Cluster, of node: Int = 2) -> [String]? {
        cluster.nodes[node]?.texts(of: "list")
    }

    private func rejection(_ counter: UInt64, of node: Int = 1, in cluster: Cluster)
        -> RejectionCode?
    {
        guard case .rejected(let code, _)? = cluster.nodes[node]?.outcomes[counter] else {
            return nil
        }
        return code
    }

    @Test func `a timer fires once, when its time has passed`() throws {
        var cluster = Cluster.twoNodes()
        set("later", .after(.seconds(2)), in: &cluster)
        cluster.dispatch(["now"], to: "list/shared", from: 2)
        cluster.pass(.milliseconds(1_990))
        #expect(texts(cluster) == ["now"])
        cluster.pass(.milliseconds(20))
        #expect(texts(cluster) == ["now", "later"])
        #expect(texts(cluster, of: 1) == ["now", "later"])
        cluster.pass(.seconds(10))
        #expect(texts(cluster) == ["now", "later"])
        #expect(cluster.sequencer?.timers.timers.isEmpty == true)
        #expect(cluster.sequencer?.timerSchedule.nextDeadline == nil)
    }

    @Test func `a timer fires once across restarts, at once if it was due meanwhile`() throws {
        var cluster = Cluster.twoNodes()
        cluster.hasTrueClock = true
        set("first", .after(.seconds(2)), in: &cluster)
        set("second", .at(Timestamp(21_000_000_000)), in: &cluster)
        cluster.killSequencer()
        cluster.pass(.seconds(30))
        cluster.restartSequencer()
        cluster.pass(.milliseconds(500))
        #expect(Set(texts(cluster) ?? []) == ["first", "second"])
        cluster.restartSequencer()
        cluster.pass(.seconds(20))
        #expect(texts(cluster)?.count == 2)
    }

    @Test func `what was due while nobody served fires in the order of its times`() throws {
        var cluster = Cluster.twoNodes()
        cluster.hasTrueClock = true
        for (text, seconds) in [("third", 9), ("first", 3), ("fourth", 12), ("second", 6)] {
            set(text, .after(.seconds(seconds)), in: &cluster)
        }
        cluster.killSequencer()
        cluster.pass(.seconds(30))
        cluster.restartSequencer()
        cluster.pass(.milliseconds(500))
        #expect(texts(cluster) == ["first", "second", "third", "fourth"])
    }

    @Test func `a firing that was not durable fires again, and one that was does not`() throws {
        for isDurable in [true, false] {
            var cluster = Cluster.twoNodes()
            set("later", .after(.seconds(1)), in: &cluster)
            cluster.isDiskSlow = true
            cluster.pass(.milliseconds(1_100))
            #expect(texts(cluster) == [])
            if isDurable { for append in cluster.waitingAppends { cluster.disk.append(append) } }
            cluster.killSequencer()
            cluster.isDiskSlow = false
            cluster.waitingAppends = []
            cluster.restartSequencer()
            cluster.pass(.seconds(20))
            #expect(texts(cluster) == ["later"])
        }
    }

    @Test func `a timer that repeats does not drift, and leaves out what passed meanwhile`() throws
    {
        var cluster = Cluster.twoNodes()
        set("tick", .after(.seconds(1)), every: .seconds(1), key: "t", in: &cluster)
        cluster.pass(.milliseconds(5_500))
        #expect(texts(cluster)?.count == 5)
        // The log is stuck for a while. One firing is under way meanwhile.
        cluster.isDiskSlow = true
        cluster.pass(.seconds(4))
        cluster.isDiskSlow = false
        cluster.finishAppends()
        cluster.pass(.milliseconds(100))
        #expect(texts(cluster)?.count == 6)
        cluster.pass(.seconds(2))
        #expect(texts(cluster)?.count == 8)
        submit(.cancel(TimerKey(target: list, name: "t")), in: &cluster)
        cluster.pass(.seconds(5))
        #expect(texts(cluster)?.count == 8)
    }

    @Test func `a cancellation is taken if the timer has not fired, and only then`() throws {
        var cluster = Cluster.twoNodes()
        set("a", .after(.seconds(1)), key: "k", in: &cluster)
        submit(.cancel(TimerKey(target: list, name: "k")), in: &cluster)
        #expect(rejection(2, in: cluster) == nil)
        submit(.cancel(TimerKey(target: list, name: "k")), in: &cluster)
        #expect(rejection(3, in: cluster) == .noSuchTimer)
        set("b", .after(.seconds(1)), key: "k", in: &cluster)
        // It has fired, but the firing is not durable yet.
        cluster.isDiskSlow = true
        cluster.pass(.milliseconds(1_100))
        submit(.cancel(TimerKey(target: list, name: "k")), in: &cluster)
        cluster.isDiskSlow = false
        cluster.finishAppends()
        cluster.run()
        #expect(rejection(5, in: cluster) == .noSuchTimer)
        #expect(texts(cluster) == ["b"])
        // A cancellation that is not durable yet stops a firing.
        set("c", .after(.seconds(1)), key: "k", in: &cluster)
        cluster.isDiskSlow = true
        submit(.cancel(TimerKey(target: list, name: "k")), in: &cluster)
        cluster.pass(.seconds(2))
        cluster.isDiskSlow = false
        cluster.finishAppends()
        cluster.pass(.seconds(2))
        #expect(texts(cluster) == ["b"])
    }

    @Test func `a timer replaces the one with its key, of the same target`() throws {
        var cluster = Cluster.twoNodes()
        cluster.open("other", on: 2)
        set("a", .after(.seconds(1)), key: "k", in: &cluster)
        set("x", .after(.seconds(1)), key: "k", to: "other", in: &cluster)
        set("b", .after(.seconds(2)), key: "k", in: &cluster)
        cluster.pass(.seconds(5))
        #expect(texts(cluster) == ["b"])
        #expect(cluster.nodes[2]?.texts(of: "other") == ["x"])
    }

    @Test func `a timer is for the life of its store`() throws {
        var cluster = Cluster.twoNodes()
        set("a", .after(.seconds(2)), in: &cluster)
        set("b", .after(.seconds(2)), key: "k", in: &cluster)
        _ = cluster.drop("list", by: 1)
        cluster.run()
        cluster.open("list", on: 1)
        // It was for the former store.
        submit(.cancel(TimerKey(target: list, name: "k")), in: &cluster)
        #expect(rejection(3, in: cluster) == .noSuchTimer)
        cluster.pass(.seconds(5))
        #expect(cluster.nodes[1]?.texts(of: "list") == [])
        #expect(cluster.sequencer?.timers.timers.isEmpty == true)
    }

    @Test func `a checkpoint has the timers`() throws {
        var cluster = Cluster.twoNodes()
        set("a", .after(.seconds(2)), every: .seconds(3), key: "k", in: &cluster)
        set("b", .at(Timestamp(2_000_000_000)), in: &cluster)
        cluster.pass(.seconds(3))
        var state = LogState(log: cluster.disk.id)
        for body in cluster.disk.bodies {
            try state.apply(Commit.decode(body: body.body), byteCount: body.body.count)
        }
        #expect(state.timers.timers.count == 2)
        #expect(try LogState(checkpoint: state.encoded()[...]) == state)
    }

    @Test func `what no sequencer can keep is rejected`() throws {
        var cluster = Cluster.twoNodes()
        let long = TimerOrder.spanMax + .seconds(1)
        set("a", .after(long), in: &cluster)
        set("a", .after(.zero), every: .milliseconds(1), in: &cluster)
        set("a", .after(.zero), key: "", in: &cluster)
        set("a", .after(.zero), key: String(repeating: "k", count: 129), in: &cluster)
        set("a", .after(.zero), isAtomic: false, in: &cluster)
        set("a", .after(.zero), to: "nobody", in: &cluster)
        for counter: UInt64 in 1...5 { #expect(rejection(counter, in: cluster) == .malformed) }
        #expect(rejection(6, in: cluster) == .unknownTarget)
        // A time long ago is now.
        set("now", .at(Timestamp(0)), in: &cluster)
        cluster.pass(.milliseconds(10))
        #expect(texts(cluster) == ["now"])
    }

    @Test func `timers fire at the rate of the key that set them, also after a restart`() throws {
        var cluster = Cluster()
        cluster.hasTrueClock = true
        cluster.settings.rates = [Name("writer")!: 10]
        cluster.principals[1] = Principal(
            name: Name("writer"),
            rights: Rights(
                patterns: [.dispatch: [.all], .host: [.all]], actionsPerSecondMax: 10))
        cluster.startSequencer()
        cluster.addNode(1, named: "alpha", store: "list")
        cluster.addNode(2, named: "beta", store: "list")
        for key in ["a", "b"] {
            set(key, .after(.milliseconds(10)), every: .milliseconds(10), key: key, in: &cluster)
        }
        cluster.pass(.seconds(10))
        #expect((90...120).contains(try #require(texts(cluster)).count))
        cluster.disconnect(1)
        cluster.killSequencer()
        cluster.startSequencer()
        cluster.reconnect(2)
        let former = try #require(texts(cluster)).count
        cluster.pass(.seconds(10))
        let count = try #require(texts(cluster)).count - former
        #expect((90...120).contains(count))
        // They leave room for what the key's programs dispatch.
        cluster.reconnect(1)
        set("never", .after(.seconds(3_600)), in: &cluster)
        cluster.pass(.milliseconds(400))
        #expect(cluster.nodes[1]?.outcomes.count == 3)
        // Nobody else waits for that.
        cluster.dispatch(["c"], to: "list/shared", from: 2)
        cluster.run()
        #expect(texts(cluster)?.last == "c")
    }

    @Test func `a key may set timers for what it may dispatch to, and has a share of them`() throws
    {
        var cluster = Cluster.twoNodes()
        cluster.principals[1] = Principal(
            name: Name("writer"),
            rights: Rights(patterns: [.dispatch: [StorePattern("other")!], .host: [.all]]))
        set("a", .after(.seconds(1)), key: "k", in: &cluster)
        #expect(rejection(1, in: cluster) == .notAllowed)
        set("b", .after(.seconds(1)), key: "k", from: 2, in: &cluster)
        submit(.cancel(TimerKey(target: list, name: "k")), in: &cluster)
        #expect(rejection(2, in: cluster) == .notAllowed)
        cluster.pass(.seconds(2))
        #expect(texts(cluster) == ["b"])
        var table = TimerTable()
        var actions = BatchBuilder()
        actions.append(
            target: BatchTarget(target: list, schemaVersion: 1, coding: .json), payload: [])
        let order = TimerOrder(
            key: nil, due: .after(.seconds(1)), interval: nil,
            actions: actions.finish(firstCounter: 1, settled: 0))
        for number in 1...UInt64(TimerTable.countMax / 2) {
            table.set(order, at: SequenceNumber(number), by: Name("writer"))
        }
        #expect(!table.hasRoom(for: order, of: Name("writer")))
        #expect(table.hasRoom(for: order, of: Name("other")))
    }
}

extension TimerTable {
    /// Whether an owner may set another timer.
    func hasRoom(for order: TimerOrder, of owner: Name?) -> Bool {
        var (count, bytes) = (0, 0)
        return hasRoom(for: order, of: owner, besideCount: &count, bytes: &bytes)
    }
}
