import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// A redirect is a hint (rule 46).
struct RedirectTests {
    /// A node without a cluster, and the effects that it wants.
    private struct LoneNode {
        var machine: ReplicaMachine
        var effects: [ReplicaEffect] = []
        var now = Duration.zero

        init() {
            machine = ReplicaMachine(
                settings: ReplicaSettings(name: nil, role: .member),
                nonce: Identifier(high: 1, low: 5))
            input(.start)
        }

        mutating func input(_ input: ReplicaInput) {
            machine.handle(
                input, at: Moment(monotonic: now, wall: Timestamp(0)), into: &effects)
        }

        mutating func redirect(_ request: UInt64? = nil, to address: String = "tcp://b:1") {
            let redirect = Redirect(request: request ?? machine.lastHello, address: address)
            input(.received(.redirect(redirect), epoch: Epoch(0)))
        }

        mutating func welcome(epoch: UInt64) {
            let welcome = Welcome(
                request: machine.lastHello, log: Identifier(high: 7, low: 1),
                claim: Identifier(high: 8, low: epoch), incarnation: Incarnation(3),
                last: SequenceNumber(9), floor: SequenceNumber(1), agreed: SequenceNumber(0),
                settled: 0, lastCounter: 0, feed: "feed",
                limits: SessionLimits(
                    windowBytes: 1 << 20, batchBytesMax: 1 << 20, payloadBytesMax: 1 << 10,
                    beatInterval: .milliseconds(100), silenceMax: .seconds(10)))
            input(.received(.welcome(welcome), epoch: Epoch(epoch)))
        }

        /// The addresses to which the node was to connect since the last call.
        mutating func moves() -> [String?] {
            defer { effects = [] }
            return effects.compactMap {
                if case .connect(let address) = $0 { address } else { nil }
            }
        }

        mutating func pass(_ time: Duration) {
            let end = now + time
            while let due = machine.nextDeadline, due <= end {
                now = due
                input(.tick)
            }
            now = end
        }
    }

    @Test func `a node follows a redirect, and says hello there`() {
        var node = LoneNode()
        node.redirect()
        #expect(node.moves() == ["tcp://b:1"])
        node.input(.reconnected)
        #expect(
            node.effects.contains { if case .send(.hello) = $0 { true } else { false } })
    }

    @Test func `an address learned late still gets its full time`() {
        var node = LoneNode()
        node.pass(.milliseconds(900))
        node.redirect()
        #expect(node.moves() == ["tcp://b:1"])
        // Meanwhile the node repeats its hello, which could make it try the next address.
        node.pass(.milliseconds(900))
        #expect(node.moves().isEmpty)
    }

    @Test func `a redirect that answers none of its hellos is ignored`() {
        var node = LoneNode()
        node.redirect(node.machine.lastHello + 1)
        #expect(node.moves().isEmpty)
        node.welcome(epoch: 1)
        node.redirect()
        #expect(node.moves().isEmpty)
        #expect(node.machine.isJoined)
    }

    @Test func `circular redirects are followed a bounded number of times`() {
        var node = LoneNode()
        for _ in 0..<20 {
            node.redirect()
            node.input(.reconnected)
        }
        let most = node.machine.settings.redirectsMax
        #expect(node.moves().count == most)
        // After that, it follows one for each hello that it sends by itself. The pauses between those grow.
        for _ in 0..<20 {
            node.pass(.milliseconds(100))
            node.redirect()
        }
        let hellos = Set([Duration.milliseconds(250), .milliseconds(750), .milliseconds(1_750)])
        #expect(node.moves().compactMap(\.self).count <= hellos.count)
        node.welcome(epoch: 1)
        node.input(.reconnected)
        node.effects = []
        node.redirect()
        #expect(node.moves() == ["tcp://b:1"])
    }

    @Test func `a node without a welcome for too long tries another address`() {
        var node = LoneNode()
        _ = node.moves()
        node.pass(.milliseconds(900))
        #expect(!node.effects.contains(.connect(to: nil)))
        node.pass(.seconds(2))
        #expect(node.effects.contains(.connect(to: nil)))
    }

    @Test
    func `a node leaves a sequencer that no longer serves, with its actions without receipts`() {
        var node = LoneNode()
        node.welcome(epoch: 1)
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(
                target: .store(StoreName("a/b")!), schemaVersion: 1, coding: .json),
            payload: [1])
        node.input(.dispatched(node.machine.batch(of: &builder, isAtomic: false)))
        node.effects = []
        node.input(
            .received(
                .bye(Bye(code: .superseded, message: "")), epoch: Epoch(1)))
        node.redirect()
        node.input(.reconnected)
        #expect(node.moves() == ["tcp://b:1"])
        node.welcome(epoch: 2)
        let isSubmitted = node.effects.contains {
            if case .send(.submit(let batch)) = $0 { batch.firstCounter == 1 } else { false }
        }
        #expect(isSubmitted)
    }
}
