import ConfluxVocabulary
import Testing

@testable import ConfluxZeroMQ

/// The reuse of memory for large frames.
@Suite struct BufferPoolTests {
    private static let beginning =
        ZMTP.greeting(.null) + ZMTP.command("READY", ZMTP.metadata(.router))

    private func decoder(_ pool: BufferPool) throws -> ZMTPDecoder {
        var decoder = ZMTPDecoder(.dealer, messageBytesMax: 1 << 24, pool: pool)
        var events: [ZMTPDecoder.Event] = []
        try Self.beginning[...].withRawBytes { try decoder.decode($0, into: &events) }
        return decoder
    }

    /// The bodies that a decoder returns for frames that arrive in pieces.
    private func decode(
        _ frames: [[UInt8]], pieceBytes: Int, by decoder: inout ZMTPDecoder
    ) throws -> [Bytes] {
        var events: [ZMTPDecoder.Event] = []
        var rest = frames.flatMap { ZMTP.header(bodyBytes: $0.count) + $0 }[...]
        while !rest.isEmpty {
            let piece = rest.prefix(pieceBytes)
            rest = rest.dropFirst(piece.count)
            try piece.withRawBytes { try decoder.decode($0, into: &events) }
        }
        return events.compactMap { if case .message(let body) = $0 { body } else { nil } }
    }

    @Test(arguments: [1_000, 65_536, .max])
    func `keeping a frame keeps its content`(pieceBytes: Int) throws {
        let pool = BufferPool()
        var decoder = try decoder(pool)
        var kept: [(body: Bytes, expected: [UInt8])] = []
        for round in 0..<24 {
            // Some bodies are released at once, and some are kept for long.
            let frames = (0..<3).map { index in
                [UInt8](
                    repeating: UInt8(truncatingIfNeeded: round * 3 + index),
                    count: round == 5 ? 1 << 20 | 1 : [33_000, 60_000, 1_000][(round + index) % 3])
            }
            let bodies = try decode(frames, pieceBytes: pieceBytes, by: &decoder)
            #expect(bodies == frames.map { $0[...] })
            if round.isMultiple(of: 3), let body = bodies.first { kept.append((body, frames[0])) }
        }
        #expect(kept.allSatisfy { $0.body == $0.expected[...] })
    }

    @Test func `a released frame's memory is reused for a frame that fits`() throws {
        let pool = BufferPool()
        var decoder = try decoder(pool)
        func place(_ count: Int) throws -> UInt {
            let body = try #require(
                try decode([[UInt8](repeating: 1, count: count)], pieceBytes: 65_536, by: &decoder)
                    .first)
            return body.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
        }
        var places: Set<UInt> = []
        for _ in 0..<100 { places.insert(try place(200_000)) }
        #expect(places.count <= BufferPool.buffersMax)
        // A much smaller frame gets other memory.
        #expect(try !places.contains(place(40_000)))
    }
}
