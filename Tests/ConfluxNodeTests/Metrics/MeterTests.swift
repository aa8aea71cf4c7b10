import ConfluxVocabulary
import ConfluxZeroMQ
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol
@testable import ConfluxSequencer

/// The metrics that are published, and what they say about health.
struct MeterTests {
    @Test func `the first entry that somebody lacks is as old as its commit`() {
        var times = CommitTimes()
        #expect(times.age(ofFirstBehind: .zero, at: .seconds(9)) == .zero)
        times.add(through: SequenceNumber(10), at: .seconds(1))
        // Entries within one span count as old as the first of them.
        times.add(through: SequenceNumber(12), at: .milliseconds(1_050))
        times.add(through: SequenceNumber(20), at: .seconds(3))
        // An entry that is already known changes nothing.
        times.add(through: SequenceNumber(20), at: .seconds(5))
        for (applied, age) in [(0, 9), (9, 9), (11, 9), (12, 7), (19, 7), (20, 0), (30, 0)] {
            let number = SequenceNumber(UInt64(applied))
            #expect(times.age(ofFirstBehind: number, at: .seconds(10)) == .seconds(age))
        }
    }

    @Test func `ages stay precise, however many commits there are`() {
        var times = CommitTimes()
        let count = 20_000
        for index in 1...count {
            times.add(through: SequenceNumber(UInt64(index)), at: .seconds(index))
        }
        let now = Duration.seconds(count)
        for applied in stride(from: 0, to: count - 100, by: 37) {
            let age = times.age(ofFirstBehind: SequenceNumber(UInt64(applied)), at: now)
            let truth = Duration.seconds(count - applied - 1)
            #expect(age >= truth, "\(applied)")
            #expect(age <= truth + truth / CommitTimes.precision + .seconds(1), "\(applied)")
        }
    }

    @Test func `the most lagging of many nodes are reported`() {
        let last = SequenceNumber(10_000)
        var replicas = (1...1_000).map { index in
            SequencerGauges.Replica(
                name: Name("node-\(index)"), applied: SequenceNumber(UInt64(index)))
        }
        // A node without a name has no series, and a node that has not reported yet has no lag.
        replicas.append(SequencerGauges.Replica(name: nil, applied: SequenceNumber(1)))
        replicas.append(SequencerGauges.Replica(name: Name("new"), applied: .zero))
        var gauges = SequencerMachine(settings: SequencerSettings(feed: "")).gauges
        gauges.last = last
        gauges.replicas = replicas
        let meter = SequencerMeter()
        meter.publish(gauges, SequencerTally(), CommitTimes(), bounds: [], at: .zero)
        let metrics = meter.metrics(at: .zero)
        #expect(metrics.lags.count == SequencerMetrics.lagsMax)
        #expect(metrics.lags.first?.name?.text == "node-1")
        #expect(metrics.lags.last?.name?.text == "node-256")
        #expect(metrics.lags.first?.entries == 9_999 && metrics.lagMax.entries == 9_999)
        #expect(metrics.replicas == 1_002)
    }

    @Test func `a sequencer whose serving thread finishes no turn is not alive`() {
        let meter = SequencerMeter()
        let began = Moment.now.monotonic
        #expect(meter.metrics(at: began + .seconds(9)).livenessFaults.isEmpty)
        let faults = meter.metrics(at: began + .seconds(12)).livenessFaults
        #expect(faults.count == 1 && faults[0].contains("serving thread"), "\(faults)")
    }

    @Test func `with a hanging log, a sequencer is first not ready, and then not alive`() {
        let meter = SequencerMeter()
        let began = Moment.now.monotonic
        meter.take(.serving(log: .none, epoch: Epoch(1), last: .zero))
        #expect(meter.metrics(at: began).readinessFaults.isEmpty)
        meter.logJobBegins(at: began)
        #expect(meter.metrics(at: began + .seconds(9)).readinessFaults.isEmpty)
        let hung = meter.metrics(at: began + .seconds(11))
        #expect(
            hung.readinessFaults.count == 1 && hung.readinessFaults[0].contains("the log thread"))
        #expect(!hung.livenessFaults.contains { $0.contains("the log thread") })
        #expect(
            meter.metrics(at: began + .seconds(61)).livenessFaults.contains {
                $0.contains("the log thread has been busy with one job for 61 s")
            })
        meter.logJobEnds(at: began + .seconds(61), isAppend: true)
        let after = meter.metrics(at: began + .seconds(61))
        #expect(after.logJobAge == nil && after.appendLatency.count == 1)
    }

    @Test func `a failed term is not ready, and divergences are detected again`() throws {
        let store = try #require(StoreName("a/b"))
        let meter = SequencerMeter()
        #expect(meter.metrics(at: .zero).readinessFaults == ["no term is serving"])
        meter.take(.serving(log: .none, epoch: Epoch(1), last: .zero))
        let status = DivergenceStatus(
            lastEqual: .zero, firstUnequal: SequenceNumber(1), nodes: [], isMajority: true,
            path: nil)
        for _ in 0..<2 { meter.take(.note(.diverged(store, status))) }
        var metrics = meter.metrics(at: .zero)
        #expect((metrics.divergedStores, metrics.divergences) == (1, 1))
        meter.take(.termFailed(message: "", pause: .zero))
        metrics = meter.metrics(at: .zero)
        #expect(!metrics.isServing && metrics.logFailures == 1)
        meter.take(.serving(log: .none, epoch: Epoch(2), last: .zero))
        metrics = meter.metrics(at: .zero)
        #expect((metrics.divergedStores, metrics.terms) == (0, 2))
    }

    @Test func `omitted events are counted, too`() {
        let meter = SequencerMeter()
        meter.take(.note(.unreadable("x")))
        meter.take(.omitted("unreadable", count: 41, span: .seconds(10)))
        meter.take(.note(.historyLost(nil, from: .zero, through: .zero)))
        meter.take(.omitted("historyLost", count: 2, span: .seconds(10)))
        meter.take(.omitted("joined", count: 1_000, span: .seconds(10)))
        let metrics = meter.metrics(at: .zero)
        #expect((metrics.unreadableFrames, metrics.historyLosses) == (42, 3))
    }

    @Test func `a node whose reducer runs too long is not alive`() {
        let meter = NodeMeter()
        let began = Moment.now.monotonic
        meter.jobBegins(at: began)
        #expect(meter.metrics(at: began + .seconds(9)).livenessFaults.isEmpty)
        let faults = meter.metrics(at: began + .seconds(11)).livenessFaults
        #expect(faults.contains { $0.contains("one job for 11 s") }, "\(faults)")
        meter.jobEnds()
        #expect(meter.metrics(at: began + .seconds(9)).livenessFaults.isEmpty)
    }

    @Test func `a node is ready when it is connected and each store is current`() {
        var metrics = NodeMetrics()
        #expect(metrics.readinessFaults == ["not connected to the sequencer"])
        metrics.isConnected = true
        #expect(metrics.readinessFaults.isEmpty)
        metrics.catchingUp = 2
        metrics.stopped = 1
        #expect(
            metrics.readinessFaults
                == ["stores that are opening or catching up: 2", "stopped stores: 1"])
    }
}
