import ConfluxHashing
import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// The two ways between a node and its sequencer: requests and their answers, and the feed. Each can fail alone.
struct WayTests {
    /// A node without a cluster. The test plays the sequencer.
    private struct LoneNode {
        var machine = ReplicaMachine(
            settings: ReplicaSettings(name: nil, role: .member), nonce: Identifier(high: 1, low: 5))
        var now = Duration.zero
        var events: [ReplicaEvent] = []
        var hellos: [Hello] = []
        var fetches: [Fetch] = []
        var loads: [Load] = []
        /// Whether the sequencer answers, and whether its feed arrives.
        var isAnswered = true
        var isFed = false
        private static let log = Identifier(high: 7, low: 1)
        private static let beatInterval = Duration.milliseconds(100)

        init(isFollowing: Bool = false) {
            isFed = isFollowing
            input(.start)
            if isFollowing { input(.follow(from: SequenceNumber(1))) }
            pass(.milliseconds(200))
            events.removeAll()
        }

        mutating func input(_ input: ReplicaInput) {
            var effects: [ReplicaEffect] = []
            machine.handle(
                input, at: Moment(monotonic: now, wall: Timestamp(0)), into: &effects)
            for effect in effects { take(effect) }
        }

        private mutating func take(_ effect: ReplicaEffect) {
            switch effect {
            case .event(let event): events.append(event)
            case .send(.hello(let hello)):
                hellos.append(hello)
                if isAnswered { welcome(hello) }
            case .send(.fetch(let fetch)): fetches.append(fetch)
            case .send(.load(let load)): loads.append(load)
            case .send(.question(let question)) where question.body == .alive && isAnswered:
                let answer = Answer(
                    number: question.number, isLast: true, node: nil, body: .alive)
                input(.received(.answer(answer), epoch: Epoch(1)))
            default: break
            }
        }

        private mutating func welcome(_ hello: Hello) {
            let welcome = Welcome(
                request: hello.request, log: Self.log, claim: Identifier(high: 8, low: 1),
                incarnation: Incarnation(3), last: SequenceNumber(9), floor: SequenceNumber(1),
                agreed: SequenceNumber(9), settled: 0, lastCounter: 0, feed: "feed",
                limits: SessionLimits(
                    windowBytes: 1 << 20, batchBytesMax: 1 << 20, payloadBytesMax: 1 << 10,
                    beatInterval: Self.beatInterval, silenceMax: .seconds(10)))
            input(.received(.welcome(welcome), epoch: Epoch(1)))
        }

        func beat() -> ReplicaInput {
            let beat = Beat(log: Self.log, last: SequenceNumber(9), floor: SequenceNumber(1))
            return .beaten(beat, epoch: Epoch(1))
        }

        /// Lets time pass, until something holds or the time is over.
        ///
        /// - Returns: How much time has passed.
        @discardableResult
        mutating func pass(
            _ most: Duration, beforeTick: ReplicaInput? = nil,
            until isEnough: (LoneNode) -> Bool = { _ in false }
        ) -> Duration {
            let begun = now
            while now < begun + most, !isEnough(self) {
                let step = now + Self.beatInterval
                while let due = machine.nextDeadline, due <= step, !isEnough(self) {
                    now = max(now, due)
                    if let beforeTick { input(beforeTick) }
                    input(.tick)
                    // Whoever waits for nothing has no deadline that has come already.
                    guard machine.nextDeadline.map({ $0 > now }) ?? true else { break }
                }
                now = max(now, step)
                if isFed { input(beat()) }
            }
            return now - begun
        }

        var isDisconnected: Bool { events.contains(.disconnected) }
    }

    @Test func `an answer that comes before the welcome is asked for again, and was not late`()
        throws
    {
        var node = LoneNode(isFollowing: true)
        let place = SnapshotPlace(
            store: StoreName("list")!, life: SequenceNumber(2), sequence: SequenceNumber(3))
        let state = Array("[]".utf8)[...]
        let reference = SnapshotReference(
            sequence: place.sequence, schemaVersion: 1, digest: Digest(of: state),
            byteCount: UInt64(state.count))
        node.input(.load(place, reference, request: 1))
        // Nobody answers the open, so the node says hello again.
        node.isAnswered = false
        node.input(
            .open(
                Open(
                    request: 2, subject: .store(place.store), versions: SupportedVersions(1),
                    events: [], initial: EncodedState(coding: .json, bytes: state))))
        node.pass(.seconds(3)) { $0.hellos.count == 2 }
        let (fetch, load) = try (#require(node.fetches.last), #require(node.loads.last))
        let (fetchCount, loadCount) = (node.fetches.count, node.loads.count)
        let patience = node.machine.slowPatience
        node.input(
            .received(
                .entries(
                    Entries(
                        request: fetch.request, last: SequenceNumber(9), floor: SequenceNumber(1),
                        commits: [])), epoch: Epoch(1)))
        node.input(
            .received(
                .snapshotServed(
                    SnapshotServed(
                        request: load.request,
                        chunk: SnapshotChunk(
                            place: place, offset: 0, byteCount: UInt64(state.count), bytes: state))),
                epoch: Epoch(1)))
        node.isAnswered = true
        node.pass(.seconds(3)) { $0.hellos.count == 3 }
        node.input(.tick)
        #expect(node.fetches.count == fetchCount + 1 && node.loads.count == loadCount + 1)
        #expect(node.machine.slowPatience == patience)
    }

    @Test func `a node without stores notices a silent sequencer within two seconds`() {
        var node = LoneNode()
        node.pass(.seconds(60))
        #expect(node.events.isEmpty && node.machine.isConnected && node.hellos.count == 1)
        node.isAnswered = false
        let passed = node.pass(.seconds(10)) { $0.isDisconnected }
        #expect(passed <= node.machine.settings.feedSilenceMax + .milliseconds(100))
        #expect(!node.machine.isConnected && !node.machine.isWhole)
        node.isAnswered = true
        node.pass(.seconds(5)) { $0.machine.isConnected }
        #expect(node.events == [.disconnected, .reconnected(Epoch(1))])
    }

    @Test func `a feed that is silent while the sequencer answers is reported, without flapping`() {
        var node = LoneNode(isFollowing: true)
        node.pass(.seconds(10))
        #expect(node.events.isEmpty && node.machine.isWhole)
        let hellos = node.hellos.count
        node.isFed = false
        node.pass(.seconds(60))
        #expect(node.events.first == .disconnected)
        #expect(node.events.dropFirst().allSatisfy { $0 == .feedSilent })
        #expect(node.events.count > 10 && node.hellos.count == hellos)
        #expect(node.machine.isJoined && !node.machine.isConnected)
        node.isFed = true
        node.pass(.seconds(1))
        #expect(node.events.last == .reconnected(Epoch(1)))
        #expect(node.machine.isConnected && node.machine.isWhole)
    }

    @Test func `a feed that works does not hide that requests get no answer`() {
        var node = LoneNode(isFollowing: true)
        node.isAnswered = false
        let passed = node.pass(.seconds(10)) { $0.isDisconnected }
        #expect(passed <= node.machine.settings.feedSilenceMax + .milliseconds(100))
        node.pass(.seconds(30))
        #expect(node.events == [.disconnected])
    }

    @Test func `a welcome is not enough to be connected again if the feed stays silent`() {
        var node = LoneNode(isFollowing: true)
        (node.isAnswered, node.isFed) = (false, false)
        node.pass(.seconds(10)) { $0.isDisconnected }
        node.isAnswered = true
        node.pass(.seconds(1)) { $0.machine.isJoined }
        #expect(node.machine.isJoined && !node.machine.isConnected)
        #expect(node.events == [.disconnected])
        node.isFed = true
        node.pass(.seconds(1))
        #expect(node.events == [.disconnected, .reconnected(Epoch(1))])
    }

    @Test func `a feed whose connection breaks again and again is noticed`() {
        var node = LoneNode(isFollowing: true)
        node.isFed = false
        for _ in 0..<20 {
            node.pass(.milliseconds(500))
            // Each connection lasts for the handshake only.
            node.input(.feedReconnected)
        }
        #expect(node.events.first == .disconnected && node.events.contains(.feedSilent))
        #expect(!node.events.contains(.reconnected(Epoch(1))))
    }

    @Test func `parts of a large message are signs of life`() {
        var node = LoneNode()
        node.isAnswered = false
        node.pass(.seconds(30), beforeTick: .stirred)
        #expect(node.events.isEmpty && node.machine.isConnected)
    }

    @Test func `a process that was stopped itself asks before it takes the sequencer for gone`() {
        var node = LoneNode()
        node.now += .seconds(60)
        node.input(.tick)
        #expect(node.events.isEmpty && node.machine.isConnected)
    }
}
