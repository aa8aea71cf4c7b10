import ConfluxVocabulary
import Testing

@testable import ConfluxZeroMQ

/// How a serving socket decodes a connection's bytes, in whatever pieces they arrive.
@Suite struct DecoderTests {
    private static let greeting: [UInt8] =
        [0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 3, 1] + Array("NULL".utf8)
        + [UInt8](repeating: 0, count: 48)

    private static func ready(_ type: String) -> [UInt8] {
        command(
            Array("\u{5}READY\u{B}Socket-Type".utf8) + [0, 0, 0, UInt8(type.utf8.count)] + type.utf8
        )
    }

    private static func command(_ body: [UInt8]) -> [UInt8] { [4, UInt8(body.count)] + body }

    private static func frame(_ body: [UInt8], hasMore: Bool = false) -> [UInt8] {
        [hasMore ? 1 : 0, UInt8(body.count)] + body
    }

    /// The events of a connection whose bytes arrive in pieces of this size, and the fault if there is one.
    private func events(
        of bytes: [UInt8], pieceBytes: Int = .max, messageBytesMax: Int = 1_000
    ) -> (events: [ZMTPDecoder.Event], fault: ZMTPFault?) {
        var decoder = ZMTPDecoder(.router, messageBytesMax: messageBytesMax)
        var events: [ZMTPDecoder.Event] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(pieceBytes)
            rest = rest.dropFirst(piece.count)
            do {
                try piece.withRawBytes { bytes throws(ZMTPFault) in
                    try decoder.decode(bytes, into: &events)
                }
            } catch {
                return (events, error)
            }
        }
        return (events, nil)
    }

    /// A client receives large frames where they stay. With a pool, their memory is used again.
    @Test(arguments: [true, false])
    func `messages are whole, however much of them is received where it stays`(hasPool: Bool) throws
    {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SplitMix64(seed: seed)
        var decoder = ZMTPDecoder(
            .dealer, messageBytesMax: 4 << 20, pool: hasPool ? BufferPool() : nil)
        var bodies: [[UInt8]] = []
        for _ in 0..<60 {
            let size = [100, 20_000, 300_000, 300_000, 1_500_000].randomElement(using: &random)!
            let first = UInt64.random(in: 0 ... .max, using: &random)
            bodies.append(
                (0..<UInt64.random(in: 0...UInt64(size), using: &random)).map {
                    UInt8(truncatingIfNeeded: (first &+ $0) &* 0x9E37_79B9_7F4A_7C15 >> 29)
                })
        }
        var rest =
            (Self.greeting + Self.ready("ROUTER")
            + bodies.flatMap {
                ZMTP.header(bodyBytes: $0.count) + $0
            })[...]
        var events: [ZMTPDecoder.Event] = []
        var directCount = 0
        while !rest.isEmpty {
            let most = Int.random(in: 1...200_000, using: &random)
            let direct = decoder.receive { memory in
                let piece = rest.prefix(min(most, memory.count))
                rest = rest.dropFirst(piece.count)
                memory.copyBytes(from: piece)
                return piece.count
            }
            directCount += direct?.count ?? 0
            let piece = direct == nil ? rest.prefix(min(most, 65_536)) : []
            rest = rest.dropFirst(piece.count)
            try piece.withRawBytes { piece throws(ZMTPFault) in
                try decoder.decode(piece, into: &events)
            }
        }
        let received = events.compactMap { if case .message(let body) = $0 { body } else { nil } }
        #expect(received == bodies.map { $0[...] }, "seed \(seed)")
        #expect(directCount > bodies.reduce(0) { $0 + $1.count } / 4, "seed \(seed)")
        #expect(decoder.heldBytes == 0)
    }

    @Test(arguments: [1, 2, 3, 7, 64, 100, .max])
    func `a peer's messages do not depend on how the bytes are split`(pieceBytes: Int) {
        let long = [UInt8](repeating: 7, count: 700)
        let bytes =
            Self.greeting + Self.ready("DEALER") + Self.frame([1, 2, 3]) + Self.frame([])
            + [2, 0, 0, 0, 0, 0, 0, 2, 0xBC] + long
            + Self.command([4] + Array("PING".utf8) + [0, 10, 8, 9])
            + Self.frame([1], hasMore: true) + Self.frame([], hasMore: true) + Self.frame([2])
            + Self.command([9] + Array("SUBSCRIBE".utf8) + [7])
            + Self.command([6] + Array("CANCEL".utf8))
            + Self.command([5] + Array("OTHER".utf8)) + Self.frame([4])
        let (events, fault) = events(of: bytes, pieceBytes: pieceBytes)
        #expect(
            events == [
                .answer(Self.ready("ROUTER")), .message([1, 2, 3]), .message([]),
                .message(long[...]), .ping([8, 9]), .malformed(frames: 3),
                .subscription(isOn: true, prefix: [7]), .subscription(isOn: false, prefix: []),
                .message([4]),
            ])
        #expect(fault == nil)
    }

    @Test(
        arguments: [
            Array("GET / HTTP/1.1\r\n".utf8) + [UInt8](repeating: 0, count: 64),
            // Another version, another mechanism.
            greeting[..<10] + [2, 0] + greeting[12...],
            greeting[..<12] + Array("CURVE".utf8) + greeting[17...],
            // No READY, a truncated one, and one without a socket type.
            greeting + frame([1]),
            greeting + command([4] + Array("PING".utf8)),
            greeting + command(Array("\u{5}READY\u{B}Socket-Type".utf8) + [0, 0, 0, 9, 1]),
            greeting + command(Array("\u{5}READY".utf8)),
            greeting + ready("SUB"),
            // Unknown flags, a command with more, an error, and a frame that is too long.
            greeting + ready("DEALER") + [8, 0],
            greeting + ready("DEALER") + [5, 0],
            greeting + ready("DEALER") + command([5] + Array("ERROR".utf8)),
            greeting + ready("DEALER") + [2, 0, 0, 0, 0, 0, 0, 3, 0xE9],
            greeting + ready("DEALER") + [2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
            greeting + ready("DEALER") + [6, 0, 0, 0, 0, 0, 0, 4, 1],
        ] as [[UInt8]])
    func `a peer that breaks the protocol is distinguished from one that follows it`(bytes: [UInt8])
    {
        for pieceBytes in [1, 5, .max] {
            let (events, fault) = events(of: bytes, pieceBytes: pieceBytes)
            #expect(fault != nil)
            #expect(!events.contains { if case .message = $0 { true } else { false } })
        }
    }

    @Test func `an endless message is abandoned, and nothing of it is kept`() throws {
        var decoder = ZMTPDecoder(.router, messageBytesMax: 1_000)
        var events: [ZMTPDecoder.Event] = []
        let beginning = Self.greeting + Self.ready("DEALER")
        try beginning[...].withRawBytes { try decoder.decode($0, into: &events) }
        let part = Self.frame([UInt8](repeating: 1, count: 200), hasMore: true)
        var parts = 0
        #expect(throws: ZMTPFault.self) {
            while parts < 1_000 {
                try part[...].withRawBytes { try decoder.decode($0, into: &events) }
                parts += 1
                #expect(decoder.heldBytes == 0)
            }
        }
        #expect(parts == ZMTPDecoder.framesMax - 1)
        #expect(events.count == 1)
    }

    @Test func `no more memory is reserved than bytes received, whatever a frame announces`() throws
    {
        var decoder = ZMTPDecoder(.router, messageBytesMax: 1 << 30)
        var events: [ZMTPDecoder.Event] = []
        let beginning = Self.greeting + Self.ready("DEALER") + [2, 0, 0, 0, 0, 0x3F, 0, 0, 0]
        try beginning[...].withRawBytes { try decoder.decode($0, into: &events) }
        #expect(decoder.heldBytes < 1_000)
        let piece = [UInt8](repeating: 0, count: 10_000)
        try piece[...].withRawBytes { try decoder.decode($0, into: &events) }
        #expect(decoder.heldBytes < 30_000)
    }
}
