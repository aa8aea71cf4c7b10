import ConfluxNode
@testable import ConfluxProtocol
import ConfluxSequencer
import ConfluxZeroMQ
import Synchronization
import Testing

/// Which clients may connect, by their keys.
struct KeyTests {
    private let sequencerKey = CurveKeyPair.random()
    private let member = CurveKeyPair.random()
    private let stranger = CurveKeyPair.random()

    private func authorized(_ keys: [CurveKeyPair]) throws -> AuthorizedKeys {
        // Each key always has the same name, since sessions belong to names.
        try AuthorizedKeys(
            keys.map { "\($0 == member ? "member" : "stranger") \($0) all\n" }.joined())
    }

    private func settings(
        _ key: CurveKeyPair?, sequencer: CurvePublicKey? = nil
    ) -> NodeSettings {
        var settings = NodeSettings()
        settings.connectTimeout = .seconds(20)
        settings.keys = key.map {
            NodeKeys(own: $0, sequencer: sequencer ?? sequencerKey.publicKey)
        }
        return settings
    }

    private func withSequencer(
        _ body: (Sequencer) async throws -> Void
    ) async throws {
        var configuration = SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: .memory)
        configuration.access = .keys(sequencerKey, authorized: try authorized([member]))
        let sequencer = try Sequencer.start(configuration)
        let result = await Result { try await body(sequencer) }
        await sequencer.stop()
        try result.get()
    }

    /// Runs a body with a sequencer whose key "limited" has this rate.
    private func withRate(
        _ rate: Int,
        _ body: (Sequencer, AsyncStream<SequencerEvent>) async throws -> Void
    ) async throws {
        var configuration = SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: .memory)
        configuration.access = .keys(
            sequencerKey,
            authorized: try AuthorizedKeys(
                "limited \(stranger) all rate=\(rate)/s\nmember \(member) all\n"))
        configuration.adjust = { $0.wasteGrace = .zero }
        let (events, tell) = AsyncStream<SequencerEvent>.makeStream()
        let sequencer = try Sequencer.start(configuration) { tell.yield($0) }
        let result = await Result { try await body(sequencer, events) }
        await sequencer.stop()
        tell.finish()
        try result.get()
    }

    @Test func `a node above its key's rate waits, and is not barred`() async throws {
        try await withRate(300) { sequencer, events in
            let node = try await Node.connect(
                to: sequencer.address, settings: settings(stranger), scope: Scope())
            let tally = try await node.store(TallyState.self)
            var handles: [DispatchHandle] = []
            for _ in 0..<900 { handles.append(tally.actions.dispatch(.add(1))) }
            for handle in handles { try await handle.receipt() }
            #expect(tally.computed.count == 900)
            await node.close()
            let isBarred = Mutex(false)
            await sequencer.stop()
            _ = try await first(of: events) { event in
                if case .note(.barred) = event { isBarred.withLock { $0 = true } }
                if case .ended = event { return true }
                return false
            }
            #expect(!isBarred.withLock { $0 })
        }
    }

    @Test func `a flooding key is cut off, and others continue`() async throws {
        try await withRate(5) { sequencer, events in
            let node = try await Node.connect(
                to: sequencer.address, settings: settings(member), scope: Scope())
            let tally = try await node.store(TallyState.self)
            // A log with long answers: a few of them exceed what a client may leave unacknowledged.
            for _ in 0..<4_000 { tally.actions.dispatch(.add(0)) }
            try await tally.actions.dispatch(.add(0)).receipt()
            let limited = try await Node.connect(
                to: sequencer.address, settings: settings(stranger), scope: Scope())
            let limitedEvents = limited.events

            var socketSettings = SocketSettings()
            socketSettings.security = .client(stranger, server: sequencerKey.publicKey)
            let flood = try ClientSocket(.dealer, settings: socketSettings)
            try flood.connect(Endpoint(sequencer.address))
            let hello = Frame.encode(
                .hello(Hello(request: 1, nonce: .random(), name: nil, role: .observer)),
                by: .unwelcomed)
            // Repeats the hello until the connection is established.
            while try flood.send(hello) != .sent {
                while try flood.receive() != nil {}
                await Task.yield()
            }
            var speaker = Speaker.unwelcomed
            var number: UInt64 = 1
            let isOver = Mutex(false)
            async let barred = first(of: events) { event in
                guard case .note(.barred) = event else { return false }
                isOver.withLock { $0 = true }
                return true
            }
            let deadline = ContinuousClock.now + .seconds(60)
            while !isOver.withLock({ $0 }), ContinuousClock.now < deadline {
                // Once the client is welcomed, it reads only where it has to.
                let isReading = speaker.epoch == .none || flood.hasUnsent
                while isReading, let event = try flood.receive() {
                    guard case .message(let frame) = event,
                        case .welcome(let welcome) = try Frame.decodeSequencerMessage(frame)
                    else {
                        continue
                    }
                    speaker = Speaker(
                        epoch: try Frame.header(of: frame).epoch, session: welcome.incarnation)
                }
                // The client never acknowledges an answer.
                let fetch = Fetch(
                    request: number, from: SequenceNumber(1), limitBytes: 1 << 18,
                    acknowledged: 0)
                number += 1
                let isSent =
                    try speaker.epoch != .none
                    && flood.send(Frame.encode(.fetch(fetch), by: speaker)) == .sent
                if !isSent { await Task.yield() }
            }
            #expect("\(try await barred)".contains("limited"))
            try await tally.actions.dispatch(.add(2)).receipt()
            #expect(tally.computed.count == 2)
            // All connections of the key end. Once the pause is over, it may connect again.
            _ = try await first(of: limitedEvents) {
                if case .connectionRefused(let message) = $0 {
                    message.contains("barred")
                } else {
                    false
                }
            }
            _ = try await first(of: limitedEvents) {
                if case .reconnected = $0 { true } else { false }
            }
            _ = try await limited.sequencerStatus()
            await limited.close()
            await node.close()
        }
    }

    @Test func `only processes with an authorised key share state`() async throws {
        try await withSequencer { sequencer in
            let node = try await Node.connect(
                to: sequencer.address, settings: settings(member), scope: Scope())
            let tally = try await node.store(TallyState.self)
            try await tally.actions.dispatch(.add(2)).receipt()
            #expect(tally.computed.count == 2)
            let wrong: [NodeSettings] = [
                settings(stranger), settings(nil),
                settings(member, sequencer: stranger.publicKey),
            ]
            for settings in wrong {
                let error = await #expect(throws: NodeError.self) {
                    _ = try await Node.connect(to: sequencer.address, settings: settings)
                }
                #expect(error?.code == .keyRefused)
            }
            try await tally.actions.dispatch(.add(3)).receipt()
            #expect(tally.computed.count == 5)
            await node.close()
        }
    }

    @Test func `a removed key is cut off, and is readmitted once it is authorised again`()
        async throws
    {
        try await withSequencer { sequencer in
            let node = try await Node.connect(
                to: sequencer.address, settings: settings(member), scope: Scope())
            let tally = try await node.store(TallyState.self)
            let events = node.events
            sequencer.authorize(try authorized([stranger]))
            _ = try await first(of: events) {
                if case .connectionRefused = $0 { true } else { false }
            }
            let other = try await Node.connect(
                to: sequencer.address, settings: settings(stranger), scope: Scope())
            let otherTally = try await other.store(TallyState.self)
            try await otherTally.actions.dispatch(.add(1)).receipt()
            sequencer.authorize(try authorized([stranger, member]))
            // Actions that are dispatched meanwhile wait.
            _ = try await withDeadline { try await tally.actions.dispatch(.add(4)).receipt() }
            #expect(tally.computed.count == 5)
            await node.close()
            await other.close()
        }
    }

    @Test(arguments: [
        "tcp://*:0", "tcp://0.0.0.0:0", "tcp://192.0.2.1:0", "tcp://[::]:0",
        "tcp://127.example.org:0",
    ])
    func `without keys a sequencer stays on its machine, unless all may connect`(bind: String) {
        let configuration = SequencerConfiguration(bind: bind, storage: .memory)
        let error = #expect(throws: SequencerError.self) { _ = try Sequencer.start(configuration) }
        #expect(error?.code == .insecure)
        var feed = SequencerConfiguration(bind: "tcp://127.0.0.1:0", storage: .memory)
        feed.feed = bind
        let other = #expect(throws: SequencerError.self) { _ = try Sequencer.start(feed) }
        #expect(other?.code == .insecure)
    }

    @Test func `a sequencer open to everybody says so`() async throws {
        var configuration = SequencerConfiguration(bind: "tcp://*:0", storage: .memory)
        configuration.access = .insecure
        let sequencer = try Sequencer.start(configuration)
        await sequencer.stop()
    }

    @Test func `the authorised keys are read, and the first invalid line is named`()
        throws
    {
        let keys = try AuthorizedKeys(
            """
            # who

             a \(member) all \r
            \tb\t\(stranger)\tobserve rate=20/s dispatch=cart/*,orders payload-max=64KiB \
            sessions-max=7 connections-max=9
            """)
        #expect(keys[member.publicKey] == Principal(name: Name("a")!, rights: .all))
        #expect(
            keys[stranger.publicKey]
                == Principal(
                    name: Name("b")!,
                    rights: Rights(
                        patterns: [
                            .observe: [.all],
                            .dispatch: [StorePattern("cart/*")!, StorePattern("orders/shared")!],
                        ], payloadBytesMax: 65_536, actionsPerSecondMax: 20, sessionsMax: 7,
                        connectionsMax: 9)))
        #expect(keys.count == 2)
        #expect(try AuthorizedKeys("").count == 0)
        let wrong: [(text: String, line: Int)] = [
            ("a", 1), ("\na x", 2), ("A \(member) all", 1),
            ("a \(member) all\na \(stranger) all", 2),
            ("a \(member) all\n\nb \(member) all", 3), ("a \(member)", 1),
            ("a \(member) rate=1/s", 1), ("a \(member) read", 1), ("a \(member) all=*", 1),
            ("a \(member) host=Cart", 1), ("a \(member) host=", 1), ("a \(member) host=a/b/c", 1),
            ("a \(member) host=a,,b", 1), ("a \(member) host=a host=b", 1),
            ("a \(member) all host", 1), ("a \(member) all rate=0/s", 1),
            ("a \(member) all rate=9", 1), ("a \(member) all payload-max=5KB", 1),
            ("a \(member) all payload-max=4096MiB", 1),
            ("a \(member) all payload-max=1 payload-max=1", 1),
            ("a \(member) all sessions-max=0", 1), ("a \(member) all sessions-max=x", 1),
            ("a \(member) all sessions-max", 1), ("a \(member) sessions-max=1", 1),
            ("a \(member) all connections-max=1 connections-max=2", 1),
            ("a \(member) all payload-max=1\u{212A}iB", 1),
            ("a \(member) host=" + Array(repeating: "a", count: 257).joined(separator: ","), 1),
            ("a \(String(describing: member).dropLast())", 1), ("\0 \(member)", 1),
            (String(repeating: "a", count: 100) + " \(member)", 1),
            (String(repeating: " ", count: AuthorizedKeys.textBytesMax + 1), 1),
        ]
        for (text, line) in wrong {
            let fault = #expect(throws: AuthorizedKeys.Fault.self) { try AuthorizedKeys(text) }
            #expect(fault?.line == line, "\(text.prefix(80))")
        }
    }

    @Test func `authorised keys are read as editors save them, and bytes are not repaired`() throws
    {
        let edited = try AuthorizedKeys(
            "\u{FEFF}#\u{301} c\r\na \(member) all\r\nb \(stranger) all\r\n")
        #expect(edited.count == 2)
        let latin = Array("# caf".utf8) + [0xE9] + Array("\na \(member) all\n".utf8)
        let fault = #expect(throws: AuthorizedKeys.Fault.self) { try AuthorizedKeys(utf8: latin) }
        #expect(fault?.line == 1)
        #expect(fault?.message == "byte 0xE9 at offset 5 is not UTF-8")
    }
}

extension Result where Failure == any Error {
    init(_ body: () async throws -> Success) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}
