import ConfluxZeroMQ
import Dispatch
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol
@testable import ConfluxSequencer

/// How a sequencer reads the authorised keys again.
struct KeyReloadTests {
    private func asker(_ number: UInt64) -> KeyReloads.Asker {
        KeyReloads.Asker(connection: ConnectionID(rawValue: number), question: number)
    }

    @Test func `a bounded number of clients waits for a reading, and another one has to ask later`()
        async throws
    {
        let (outcomes, told) = AsyncStream.makeStream(of: KeyReloads.Outcome.self)
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let gate = DispatchSemaphore(value: 0)
        var reloads = KeyReloads(
            read: {
                begin.yield()
                gate.wait()
                return .success(AuthorizedKeys())
            }, tell: { told.yield($0) })
        for number in 1...KeyReloads.waitingMax {
            #expect(reloads.begin(for: asker(UInt64(number))) == nil)
        }
        guard case .failed(.tableFull, _)? = reloads.begin(for: asker(100)) else {
            Issue.record("a further client waits")
            return
        }
        // A reload by the process itself needs no place.
        #expect(reloads.begin(for: nil) == nil)
        for _ in 0...KeyReloads.waitingMax { gate.signal() }
        var seen = begun.makeAsyncIterator()
        var ended = outcomes.makeAsyncIterator()
        for number in 1...KeyReloads.waitingMax {
            _ = await seen.next()
            let outcome = try #require(await ended.next())
            // One after another, in the order of the requests.
            #expect(outcome.asker?.question == UInt64(number))
            #expect(reloads.end(outcome) == .reloaded(count: 0))
        }
        #expect(reloads.begin(for: asker(101)) == nil)
        gate.signal()
    }

    @Test func `a key that waits for readings leaves places for others`() {
        var reloads = KeyReloads(read: { .success(AuthorizedKeys()) }, tell: { _ in })
        let keys = [CurveKeyPair.random().publicKey, CurveKeyPair.random().publicKey]
        func ask(_ number: UInt64, _ key: CurvePublicKey) -> Bool {
            let asker = KeyReloads.Asker(
                connection: ConnectionID(rawValue: number), question: number, key: key)
            return reloads.begin(for: asker) == nil
        }
        let most = KeyReloads.waitingMax
        #expect((1...2 * most).count { ask(UInt64($0), keys[0]) } == most / 2)
        #expect(ask(100, keys[1]))
        let asker = KeyReloads.Asker(
            connection: ConnectionID(rawValue: 1), question: 1, key: keys[0])
        for _ in 0..<2 {
            _ = reloads.end(KeyReloads.Outcome(asker: asker, result: .success(AuthorizedKeys())))
        }
        #expect(ask(200, keys[0]))
    }

    /// The answer may take a while, so the connection must not end before it was sent.
    @Test(arguments: ["all rate=5/s", nil])
    func `a client that changes its own key gets the answer before its connection ends`(
        rights: String?
    ) async throws {
        let (own, key, other) = (
            CurveKeyPair.random(), CurveKeyPair.random(), CurveKeyPair.random()
        )
        let changed = try AuthorizedKeys(
            "other \(other) all\n" + (rights.map { "ops \(key) \($0)\n" } ?? ""))
        var configuration = SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: .memory)
        configuration.access = .keys(
            own, authorized: try AuthorizedKeys("ops \(key) all\nother \(other) all\n"),
            reading: { .success(changed) })
        let sequencer = try Sequencer.start(configuration)
        func connect(_ key: CurveKeyPair) async throws -> Node {
            var settings = NodeSettings()
            settings.connectTimeout = .seconds(20)
            settings.keys = NodeKeys(own: key, sequencer: own.publicKey)
            return try await Node.connect(
                to: sequencer.address, settings: settings, scope: Scope())
        }
        let (node, bystander) = (try await connect(key), try await connect(other))
        let events = node.events
        let begun = ContinuousClock.now
        let answer = try await node.core.ask(.reload, patience: .seconds(60))
        #expect(answer.body == .reloaded(count: UInt32(changed.count)))
        _ = try await first(of: events) { event in
            switch event {
            case .reconnected, .connectionRefused: true
            default: false
            }
        }
        // The connection ends this long after the answer. However busy the machine is, that takes no less time.
        #expect(ContinuousClock.now - begun > Access.answerDelay / 2)
        _ = try await bystander.sequencerStatus()
        await node.close()
        await bystander.close()
        await sequencer.stop()
    }

    @Test
    func `a failed reading is reported with its reason, and so is a missing file`() {
        var reloads = KeyReloads(
            read: { .failure(AuthorizedKeysError("line 3: no")) }, tell: { _ in })
        let outcome = KeyReloads.Outcome(
            asker: nil, result: .failure(AuthorizedKeysError("line 3: no")))
        #expect(reloads.end(outcome) == .failed(.reloadFailed, message: "line 3: no"))
        var none = KeyReloads(read: nil, tell: { _ in })
        guard case .failed(.reloadFailed, let message)? = none.begin(for: asker(1)) else {
            Issue.record("there was a file to read")
            return
        }
        #expect(message.contains("--authorized"))
    }
}
