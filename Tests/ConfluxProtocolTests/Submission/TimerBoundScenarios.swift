import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// The bounds of timers, and what keeps a timer from firing (rules 26 and 27).
struct TimerBoundScenarios {
    private func order(
        _ due: TimerOrder.Due = .after(.seconds(3_600)), every interval: Duration? = nil,
        key: String? = nil, bytes: Int = 1, to targets: [String] = ["list"]
    ) -> TimerOrder {
        var actions = BatchBuilder()
        for target in targets {
            actions.append(
                target: BatchTarget(target: Target(target)!, schemaVersion: 1, coding: .json),
                payload: Array(repeating: UInt8(ascii: "x"), count: bytes))
        }
        return TimerOrder(
            key: key, due: due, interval: interval,
            actions: actions.finish(
                firstCounter: 1, settled: 0, isAtomic: targets.count > 1))
    }

    private func submit(
        _ requests: [TimerRequest], coding: (Int) -> PayloadCoding = { _ in .compact },
        in cluster: inout Cluster
    ) {
        var builder = BatchBuilder()
        for (place, request) in requests.enumerated() {
            builder.append(
                target: BatchTarget(target: .timers, schemaVersion: 1, coding: coding(place)),
                payload: request.payload)
        }
        cluster.dispatch(&builder, from: 1, isAtomic: true)
        cluster.run()
    }

    private func freeze(_ isFrozen: Bool, in cluster: inout Cluster) {
        _ = cluster.nodes[1]?.freeze("list", isFrozen)
        cluster.flushInputs(of: 1)
        cluster.run()
    }

    private func ticks(_ cluster: Cluster) -> Int? { cluster.nodes[2]?.texts(of: "list").count }

    @Test func `a timer whose store was frozen fires at its own times again`() {
        var cluster = Cluster.eager()
        cluster.hasTrueClock = true
        submit(
            [.set(order(.after(.seconds(100)), every: .seconds(100)))], in: &cluster)
        cluster.pass(.seconds(50))
        freeze(true, in: &cluster)
        cluster.pass(.seconds(120))
        #expect(ticks(cluster) == 0)
        freeze(false, in: &cluster)
        cluster.pass(.seconds(5))
        #expect(ticks(cluster) == 1)
        // At 200 s, and not a hundred seconds after the thaw.
        cluster.pass(.seconds(20))
        #expect(ticks(cluster) == 1)
        cluster.pass(.seconds(10))
        #expect(ticks(cluster) == 2)
        cluster.pass(.seconds(100))
        #expect(ticks(cluster) == 3)
    }

    @Test func `a timer keeps nothing in memory but its actions`() throws {
        let payload = TimerRequest.set(order(bytes: 10)).payload
        var large = [UInt8](repeating: 0, count: 1_000_000)
        large += payload
        let slice = large[1_000_000...]
        guard case .set(let order) = try TimerRequest(payload: slice) else {
            Issue.record("it sets a timer")
            return
        }
        #expect(order.actions.encoded.startIndex > 1_000_000)
        var table = TimerTable()
        table.set(order, at: SequenceNumber(1), by: nil)
        #expect(table[SequenceNumber(1)]?.order.actions == order.actions)
        #expect(table[SequenceNumber(1)]?.order.actions.encoded.startIndex == 0)
    }

    @Test func `timers that can't fire are tried at a bounded rate`() {
        var schedule = TimerSchedule()
        let count: UInt64 = 10_000
        for number in 1...count {
            schedule.set(SequenceNumber(number), after: .zero, at: .zero)
        }
        var (now, tries) = (Duration.zero, 0)
        while now < .seconds(20) {
            while let number = schedule.due(at: now, Timestamp(0)) {
                schedule.postpone(number, by: .milliseconds(100), at: now)
                tries += 1
            }
            now = max(now, schedule.nextDeadline ?? now)
        }
        #expect(tries < 150_000)
        // A few are tried often.
        schedule.set(SequenceNumber(count + 1), after: .zero, at: now)
        for number in 1...count { schedule.remove(SequenceNumber(number)) }
        schedule.postpone(SequenceNumber(count + 1), by: .milliseconds(100), at: now)
        #expect(schedule.nextDeadline == now + .milliseconds(100))
    }

    @Test func `the timers of one batch find room together, or none of them is set`() throws {
        var cluster = Cluster.eager()
        let owner = cluster.principals[1]?.name
        let large = order(bytes: 100_000)
        var number: UInt64 = 1 << 40
        while cluster.sequencer?.timers.hasRoom(for: large, of: owner) == true {
            cluster.sequencer?.timers.set(large, at: SequenceNumber(number), by: owner)
            number += 1
        }
        let used = try #require(cluster.sequencer?.timers.bytes.total)
        let others = used / Int(number - 1 << 40) - 100_000
        cluster.sequencer?.timers.end(SequenceNumber(number - 1))
        let count = cluster.sequencer?.timers.counts.total
        // Each of them would fit.
        let free = TimerTable.bytesMax - used + 100_000 + others
        let half = free * 3 / 4 - others
        submit([.set(order(bytes: half)), .set(order(bytes: half))], in: &cluster)
        guard case .rejected(.tableFull, _)? = cluster.nodes[1]?.outcomes[1] else {
            Issue.record("both were set, each of \(half) bytes, and \(free) were free")
            return
        }
        #expect(cluster.sequencer?.timers.counts.total == count)
        // What replaces a timer needs no more room.
        let keyed = order(key: "k", bytes: half)
        submit([.set(keyed)], in: &cluster)
        submit([.set(keyed), .set(keyed)], in: &cluster)
        #expect(cluster.nodes[1]?.outcomes[4] != nil)
        #expect(cluster.sequencer?.timers.counts.total == (count ?? 0) + 1)
        #expect((cluster.sequencer?.timers.bytes.total ?? .max) <= TimerTable.bytesMax)
    }

    @Test func `timers in several rows of one batch are all set, also after a restart`() {
        var cluster = Cluster.eager()
        submit(
            [.set(order(.after(.seconds(60)))), .set(order(.after(.seconds(60))))],
            coding: { $0 == 0 ? .compact : .json }, in: &cluster)
        #expect(cluster.sequencer?.timers.timers.count == 2)
        cluster.restartSequencer()
        cluster.pass(.seconds(10))
        #expect(cluster.sequencer?.timers.timers.count == 2)
        cluster.pass(.seconds(90))
        #expect(ticks(cluster) == 2)
    }

    @Test func `thousands of timers of a dropped store end bit by bit, while the disk is slow`() {
        var cluster = Cluster.eager()
        for _ in 1...20 {
            submit(
                (1...200).map { _ in .set(order(.after(.seconds(60)))) }, in: &cluster)
        }
        #expect(cluster.sequencer?.timers.timers.count == 4_000)
        _ = cluster.drop("list", by: 1)
        cluster.run()
        cluster.isDiskSlow = true
        cluster.pass(.seconds(61))
        cluster.isDiskSlow = false
        cluster.finishAppends()
        cluster.pass(.seconds(10))
        #expect(cluster.sequencer?.timers.timers.isEmpty == true)
        #expect(cluster.sequencer?.timerSchedule.nextDeadline == nil)
    }

    @Test func `a list of timers has a bounded size, and its pages have each timer once`() {
        var cluster = Cluster.eager()
        let targets = (0..<200).map { "list/\($0)" }
        for number: UInt64 in 1...2_500 {
            cluster.sequencer?.timers.set(
                order(to: number % 5 == 0 ? targets : ["list"]), at: SequenceNumber(number),
                by: nil)
        }
        cluster.sequencer?.timers.land(through: SequenceNumber(2_500), at: Timestamp(0))
        var (listed, last, most): ([UInt64], SequenceNumber, Int) = ([], .zero, 0)
        while let page = cluster.sequencer?.list(behind: last, for: Rights.all), !page.isEmpty {
            listed += page.map(\.number.rawValue)
            last = page[page.count - 1].number
            let answer = Answer(number: 1, isLast: true, node: nil, body: .timers(page))
            most = max(most, Frame.encode(.answer(answer), epoch: Epoch(1)).count)
        }
        #expect(listed == Array(1...2_500))
        #expect(most < 4 << 20)
    }

    @Test func `a key is shown the timers for its stores, and no content of their entries`() throws
    {
        var cluster = Cluster.eager()
        cluster.open("other", on: 2)
        submit([.set(order(key: "secret"))], in: &cluster)
        submit([.set(order(to: ["list", "other"]))], in: &cluster)
        submit([.set(order(to: ["list/*"]))], in: &cluster)
        submit([.cancel(TimerKey(target: Target("list")!, name: "secret"))], in: &cluster)
        submit([.set(order(key: "secret"))], in: &cluster)
        func listed(_ permission: Rights.Permission, _ pattern: String) throws -> Int? {
            let rights = Rights(patterns: [permission: [try #require(StorePattern(pattern))]])
            return cluster.sequencer?.list(behind: .zero, for: rights).count
        }
        #expect(try listed(.observe, "*/*") == 3)
        #expect(try listed(.dispatch, "list") == 1)
        #expect(try listed(.observe, "list/*") == 2)
        #expect(try listed(.host, "list") == 1)
        #expect(try listed(.dispatch, "other") == 0)
        #expect(try listed(.administer, "*/*") == 0)
        for (pattern, isHidden) in [("list/*", true), ("*/*", false)] {
            let rights = Rights(patterns: [.observe: [try #require(StorePattern(pattern))]])
            var payloads: [Bytes] = []
            for (_, _, body) in cluster.disk.bodies {
                let seen = rights.allowReadingAll ? body : try #require(rights.visible(body: body))
                for case .batch(_, let batch) in try Commit.decode(body: seen).blocks {
                    for entry in batch.parsedEntries
                    where batch.targets[entry.target].target == .timers {
                        payloads.append(entry.payload)
                    }
                }
            }
            #expect(payloads.count == 5 && payloads.allSatisfy { $0.isEmpty == isHidden })
        }
    }

    @Test func `a jump of the wall clock moves what waits for a time of day, and nothing else`() {
        var cluster = Cluster.eager()
        cluster.hasTrueClock = true
        cluster.pass(.seconds(1))
        var effects: [SequencerEffect] = []
        submit(
            [
                .set(order(.after(.seconds(7_200)), key: "after")),
                .set(order(.at(cluster.moment.wall.advanced(by: .seconds(7_200))), key: "at")),
            ], in: &cluster)
        var sequencer = cluster.sequencer!
        let jumped = Timestamp(cluster.moment.wall.rawValue + 3 * 3_600 * 1_000_000_000)
        for seconds in 1...90 {
            sequencer.handle(
                .tick,
                at: Moment(
                    monotonic: cluster.now + .seconds(seconds),
                    wall: jumped.advanced(by: .seconds(seconds))), into: &effects)
            // It is believed only after a minute.
            if seconds < 60 { #expect(sequencer.timers.timers.count == 2) }
        }
        #expect(sequencer.timers.timers.values.map(\.order.key) == ["after"])
    }
}
