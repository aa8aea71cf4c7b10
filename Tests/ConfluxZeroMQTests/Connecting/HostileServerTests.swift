import ConfluxVocabulary
import Synchronization
import Testing

@testable import ConfluxZeroMQ

/// Servers to which a client should not have connected.
@Suite struct HostileServerTests {
    private static let greeting = ZMTP.greeting(.null)
    private static let router = ZMTP.command("READY", ZMTP.metadata(.router))

    private let server: PretendedServer
    private let client: ClientSocket

    init() throws {
        var settings = SocketSettings.test
        settings.messageBytesMax = 1 << 20
        settings.handshakeInterval = .milliseconds(200)
        server = try PretendedServer()
        client = try ClientSocket(.dealer, settings: settings)
        try client.connect(server.endpoint)
    }

    private func failure() throws -> ConnectionFailure {
        try wait(for: client) { try client.failure() }
    }

    @Test(
        arguments: [
            (Array("HTTP/1.1 400 Bad Request\r\n".utf8), .stranger),
            ([0xFF] + [UInt8](repeating: 0, count: 63), .stranger),
            (ZMTP.greeting(.curve), .otherMechanism),
            (greeting + ZMTP.command("READY", ZMTP.metadata(.publisher)), .otherSocket),
            (greeting + ZMTP.error(ZMTP.refusedStatus), .denied(status: 400)),
            (greeting + ZMTP.error("no number"), .denied(status: 0)),
        ] as [([UInt8], ConnectionFailure)])
    func `a node learns what listens instead of a sequencer, and tries again later`(
        bytes: [UInt8], expected: ConnectionFailure
    ) throws {
        try server.accept(from: client, saying: bytes)
        #expect(try failure() == expected)
        #expect(try client.send([1]) == .wouldBlock)
        #expect(try wait(for: client) { try client.receive() } == .connecting)
    }

    @Test(
        arguments: [
            greeting + [8, 0],
            greeting + [0, 1, 1],
            greeting + ZMTP.command("HELLO", [1, 0]),
            greeting + ZMTP.command("WELCOME", [UInt8](repeating: 1, count: 160)),
            greeting + ZMTP.command("READY", [1, 2, 3]),
            // A message of two exabytes, one above the limit, and one with endless frames.
            greeting + router + [2, 0x1F, 0, 0, 0, 0, 0, 0, 0],
            greeting + router + [2, 0, 0, 0, 0, 0, 0x10, 0, 1],
            greeting + router + (0..<ZMTPDecoder.framesMax).flatMap { _ in [1, 1, 0] as [UInt8] },
        ] as [[UInt8]])
    func `a server that breaks the protocol is left`(bytes: [UInt8]) throws {
        try server.accept(from: client, saying: bytes)
        guard case .broken = try failure() else {
            Issue.record("it was taken for a server")
            return
        }
    }

    @Test func `a server that hangs up is tried again soon`() throws {
        try server.accept(from: client)
        server.hangUp()
        #expect(try failure() == .silent)
        try server.accept(from: client, saying: Self.greeting)
        server.hangUp()
        #expect(try failure() == .ended)
        try server.accept(from: client, saying: Self.greeting + Self.router)
        server.hangUp()
        #expect(try failure() == .ended)
    }

    @Test func `a server that is silent, or dribbles its handshake, is left after a timeout`()
        throws
    {
        try server.accept(from: client)
        #expect(try failure() == .silent)
        try server.accept(from: client)
        let bytes = Self.greeting + Self.router
        var said = 0
        let failure = try wait(for: client, pause: .milliseconds(1)) {
            if said < Self.greeting.count + 4 {
                server.say([bytes[said]])
                said += 1
            }
            return try client.failure()
        }
        #expect(failure == .ended)
    }

    @Test
    func `an endless message holds only the bytes received, and its server is left`()
        throws
    {
        try server.accept(
            from: client, saying: Self.greeting + Self.router + [2, 0, 0, 0, 0, 0, 0x10, 0, 0])
        try wait(for: client) {
            while let event = try client.receive() { if event == .connected { return () } }
            return nil
        }
        // Other users of the thread have their turns: each call takes only what one read returns.
        let part = [UInt8](repeating: 7, count: 1 << 16)
        for _ in 0..<15 {
            #expect(server.say(part) == part.count)
            let poller = Poller(waker: try Waker())
            _ = try poller.add(client)
            _ = try poller.wait(timeout: deadline)
            #expect(try client.receive() == nil)
        }
        server.hangUp()
        #expect(try failure() == .ended)
    }

    @Test func `a server that sends useless bytes does not block its client's owner`()
        throws
    {
        try server.accept(from: client, saying: Self.greeting + Self.router)
        try wait(for: client) {
            while let event = try client.receive() { if event == .connected { return () } }
            return nil
        }
        let isOver = Atomic(false)
        let flooded = Handover(server)
        let flood = try NamedThread("flood") {
            // Endless messages of two frames each.
            let part = (0..<16_384).flatMap { _ in [1, 0, 0, 0] as [UInt8] }
            var count = 0
            while !isOver.load(ordering: .relaxed) {
                let said = flooded.value.say(Array(part.dropFirst(count % 4)))
                if said > 0 { count += said } else { NamedThread.yield() }
            }
        }
        defer {
            isOver.store(true, ordering: .relaxed)
            flood.join()
        }
        while client.malformedCount == 0 { #expect(try client.receive() == nil) }
        #expect(client.malformedCount <= 16 * 16_385)
    }

    @Test func `an encrypted client leaves a server that can't prove its key`() throws {
        var settings = SocketSettings.test
        settings.security = .client(.random(), server: CurveKeyPair.random().publicKey)
        for answer in [
            ZMTP.command("WELCOME", [UInt8](repeating: 1, count: 160)),
            ZMTP.command("WELCOME", []), ZMTP.command("READY", [UInt8](repeating: 1, count: 60)),
            ZMTP.command("INITIATE", [1]), [0, 1, 1],
        ] {
            let client = try ClientSocket(.dealer, settings: settings)
            try client.connect(server.endpoint)
            try server.accept(from: client, saying: ZMTP.greeting(.curve) + answer)
            let failure = try wait(for: client) { try client.failure() }
            guard case .broken = failure else {
                Issue.record("\(failure)")
                return
            }
            #expect(try client.send([1]) == .wouldBlock)
        }
    }

    @Test func `pings are answered`() throws {
        try server.accept(
            from: client,
            saying: Self.greeting + Self.router + ZMTP.command("PING", [0, 1, 8])
                + ZMTP.command("PING", [0, 1, 9]))
        try wait(for: client) {
            while let event = try client.receive() { if event == .connected { return () } }
            return nil
        }
        var heard: [UInt8] = []
        try wait(for: client, pause: .milliseconds(1)) {
            heard += server.heard()
            return heard.count < 64 + 27 + 8 ? nil : ()
        }
        // Several pings that arrive together get one answer.
        #expect(
            heard == ZMTP.greeting(.null, isServing: false)
                + ZMTP.command("READY", ZMTP.metadata(.dealer)) + ZMTP.command("PONG", [9]))
    }
}
