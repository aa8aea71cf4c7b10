import ConfluxSequencer
import Dispatch
import Synchronization
import Testing

@testable import Conflux
@testable import ConfluxNode

/// What a node does at the limits of its buffers.
struct NodeBoundTests {
    /// A model whose reducer blocks until the test releases it.
    private struct Held: Model {
        static let name = "held"
        static let isEntered = AsyncStream.makeStream(of: Void.self)
        static let release = DispatchSemaphore(value: 0)
        enum Action: Codable, Sendable { case hold }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            Self.isEntered.continuation.yield()
            Self.release.wait()
        }
    }

    @Test func `the jobs waiting for a blocked apply thread are bounded`()
        async throws
    {
        try await withWorld { world in
            let node = try await world.node("slow") { $0.jobsMax = 4 }
            let other = try await world.node("other")
            let held = try await node.store(Held.self)
            let mine = try await node.store(TallyState.self)
            let theirs = try await other.store(TallyState.self)
            let hold = held.dispatch(.hold)
            _ = try await first(of: Held.isEntered.stream) { true }
            defer { Held.release.signal() }

            var last = SequenceNumber.zero
            for _ in 0..<10 {
                last = try await theirs.actions.dispatch(.add(1)).receipt().sequence
            }
            let core = node.core
            let reached = last
            try await withDeadline {
                while let live = await core.linkStatus()?.live, live < reached {
                    try Task.checkCancellation()
                }
            }
            // The actions of other nodes are accepted; their bytes are bounded.
            let waiting = core.jobs.count
            #expect(waiting >= 10)

            // A barrier fails at once.
            let full = await #expect(throws: NodeError.self) { try await node.barrier() }
            #expect(full?.code == .unanswered)
            // A question is dropped.
            let store = try #require(StoreName("held"))
            let question = Question.Body.observe(store, node: Name("slow"), after: .zero)
            let late = await #expect(throws: NodeError.self) {
                _ = try await other.core.ask(question, patience: .milliseconds(100))
            }
            #expect(late?.code == .timedOut)
            // Dispatches stay in the outbox.
            let handle = mine.actions.dispatch(.add(1))
            for _ in 0..<3 { _ = await core.linkStatus() }
            #expect(!core.outbox.isEmpty)
            #expect(core.jobs.count == waiting)

            Held.release.signal()
            try await hold.receipt()
            try await handle.receipt()
            try await node.barrier()
            #expect(mine.computed.count == 11)
            await node.close()
            await other.close()
        }
    }

    @Test func `a thread that dispatches waits at the outbox's bound, and nothing is dropped`()
        throws
    {
        let bytesMax = 100
        let outbox = Outbox(bytesMax: bytesMax, policy: .wait, wake: {})
        let target = BatchTarget(
            target: try #require(Target("tally/*")), schemaVersion: 1, coding: .json)
        let total = 5_000
        let done = DispatchSemaphore(value: 0)
        DispatchQueue(label: "dispatches").async {
            let destination = Outbox.Destination(target)
            for _ in 0..<total { _ = outbox.submit(destination, [1, 2, 3, 4], mayWait: true) }
            done.signal()
        }
        var taken = 0
        let deadline = ContinuousClock.now + .seconds(60)
        while taken < total, ContinuousClock.now < deadline {
            guard let batch = outbox.take(if: { _ in true }) else { continue }
            #expect(batch.builder.count <= bytesMax / 4)
            taken += batch.builder.count
        }
        #expect(taken == total)
        #expect(done.wait(timeout: .now() + 10) == .success)
        // A thread of the node itself never waits. There is as much room again for such threads.
        for _ in 0..<2 * bytesMax / 4 {
            let handle = outbox.submit(Outbox.Destination(target), [1, 2, 3, 4], mayWait: false)
            #expect(handle.outcome == nil)
        }
        let handle = outbox.submit(Outbox.Destination(target), [1], mayWait: false)
        guard case .failed(let error)? = handle.outcome else {
            Issue.record("it did not fail")
            return
        }
        #expect(error.code == .outboxFull)
    }

    @Test func `a bounded number of bytes of refusals is kept, and older ones are unknown`() {
        let bytesMax = 300
        var effects = NoEffects(bytesMax: bytesMax)
        func refuse(_ number: UInt64, _ message: String) {
            effects.add(
                [
                    NoEffect(
                        sequence: SequenceNumber(number),
                        why: .refused(RefusalText(description: message)),
                        incarnation: Incarnation(1))
                ], own: [])
            #expect(effects.byteCount <= bytesMax)
        }
        for number in 1...3 as ClosedRange<UInt64> {
            refuse(number * 10, String(repeating: "x", count: 50))
        }
        #expect(effects.unknownThrough == SequenceNumber(10))
        guard case .unknown = effects.effect(of: SequenceNumber(10)),
            case .refused = effects.effect(of: SequenceNumber(20)),
            case .applied = effects.effect(of: SequenceNumber(25)),
            case .refused = effects.effect(of: SequenceNumber(30))
        else {
            Issue.record("\(effects)")
            return
        }
    }

    /// An error may contain a key of 1 MiB that somebody sent.
    @Test func `one long refusal makes no other one unknown`() {
        var effects = NoEffects(bytesMax: 64 << 10)
        for (number, count) in [(1, 10), (2, 1 << 20), (3, 10)] as [(UInt64, Int)] {
            let text = String(repeating: "x", count: count)
            effects.add(
                [
                    NoEffect(
                        sequence: SequenceNumber(number),
                        why: .refused(RefusalText(description: text)), incarnation: Incarnation(1))
                ], own: [])
        }
        #expect(effects.unknownThrough == .zero)
        #expect(effects.byteCount < 8 << 10)
    }

    @Test func `a bounded number of times without entries is kept, and older ones are unknown`() {
        let subject = HostingSubject.store(StoreName("tally/shared")!)
        let progress = StoreProgress(subject, refusalBytesMax: 1 << 10) { _ in }
        for index in 0...UInt64(StoreProgress.absencesMax) {
            progress.leave(at: SequenceNumber(10 * index + 3))
            progress.comeBack(at: SequenceNumber(10 * index + 6))
        }
        guard case .unknown = progress.effect(of: SequenceNumber(4)),
            case .applied = progress.effect(of: SequenceNumber(7)),
            case .nobody = progress.effect(of: SequenceNumber(14)),
            case .applied = progress.effect(of: SequenceNumber(16))
        else {
            Issue.record("\(progress.effects)")
            return
        }
    }

    @Test func `a slow reader of events loses the oldest`() async {
        let hub = EventHub(eventsMax: 2)
        let stream = hub.stream()
        for text in ["a", "b", "c"] { hub.send(.unreadableFrame(text)) }
        hub.finish()
        var texts: [String] = []
        for await event in stream {
            if case .unreadableFrame(let text) = event { texts.append(text) }
        }
        #expect(texts == ["b", "c"])
    }

    @Test func `a bounded number of questions waits for answers, and the oldest is dropped`() {
        var pending = PendingQuestions()
        for number in 1...4_097 as ClosedRange<UInt64> {
            pending.add(
                Question(number: number, patience: .seconds(1), body: .status), at: .zero)
        }
        var numbers: [UInt64] = []
        pending.answer(at: { .zero }) {
            numbers.append($0.number)
            return true
        }
        #expect(numbers == Array(2...4_097))
        pending.answer(at: { .zero }) { _ in
            Issue.record("it was answered before")
            return true
        }
    }
}
