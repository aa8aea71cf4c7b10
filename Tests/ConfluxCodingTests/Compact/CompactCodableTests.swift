import ConfluxCoding
import ConfluxVocabulary
import Foundation
import Testing

/// Has one case for each way of writing.
private enum Move: CompactCodable, Hashable, Sendable {
    case stop
    case go(at: Double, by: Int8, far: Bool, to: String)
    case go2(go2: UInt64)
    case turn(Turn)

    struct Turn: Codable, Hashable, Sendable {
        var left: Int
        var turn: Int
    }

    func write(to output: inout CompactOutput) {
        switch self {
        case .stop: output.beginCase("stop", fields: 0)
        case .go(let speed, let step, let isFar, let place):
            output.beginCase("go", fields: 4)
            output.write(speed, forKey: "at")
            output.write(step, forKey: "by")
            output.write(isFar, forKey: "far")
            output.write(place, forKey: "to")
        case .go2(let number):
            output.beginCase("go2", fields: 1)
            output.write(number, forKey: "go2")
        case .turn(let turn):
            output.beginCase("turn", fields: 1)
            output.beginObject(fields: 2, forKey: "_0")
            output.write(turn.left, forKey: "left")
            output.write(turn.turn, forKey: "turn")
        }
    }

    init(from input: inout CompactInput) throws(CompactMismatch) {
        if input.isCase("go", fields: 4) {
            self = .go(
                at: try input.double(forKey: "at"), by: try input.integer(forKey: "by"),
                far: try input.bool(forKey: "far"), to: try input.string(forKey: "to"))
        } else if input.isCase("go2", fields: 1) {
            self = .go2(go2: try input.integer(forKey: "go2"))
        } else if input.isCase("turn", fields: 1) {
            try input.beginObject(fields: 2, forKey: "_0")
            self = .turn(
                Turn(
                    left: try input.integer(forKey: "left"),
                    turn: try input.integer(forKey: "turn")))
        } else if input.isCase("stop", fields: 0) {
            self = .stop
        } else {
            throw CompactMismatch()
        }
    }
}

/// Nothing but bytes, of a fixed number.
private struct Tick: CompactCodable, Hashable, Sendable {
    var fields: SIMD4<UInt64>

    init(_ fields: SIMD4<UInt64>) { self.fields = fields }

    init(from decoder: any Decoder) throws {
        let data = try decoder.singleValueContainer().decode(Data.self)
        guard data.count == 32 else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "a tick has 32 bytes"))
        }
        fields = data.withUnsafeBytes { $0.loadUnaligned(as: SIMD4<UInt64>.self) }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(withUnsafeBytes(of: fields) { Data($0) })
    }

    func write(to output: inout CompactOutput) {
        withUnsafeBytes(of: fields) { output.write($0.bytes) }
    }

    init(from input: inout CompactInput) throws(CompactMismatch) {
        fields = try input.bytes { (bytes) throws(CompactMismatch) in
            guard bytes.byteCount == 32 else { throw CompactMismatch() }
            return bytes.unsafeLoadUnaligned(as: SIMD4<UInt64>.self)
        }
    }
}

/// Bytes in a field, of any number.
private struct Image: CompactCodable, Hashable, Sendable {
    var bytes: Data
    var width: Int

    init(_ bytes: Data, width: Int) { (self.bytes, self.width) = (bytes, width) }

    func write(to output: inout CompactOutput) {
        output.beginObject(fields: 2)
        output.write(bytes.bytes, forKey: "bytes")
        output.write(width, forKey: "width")
    }

    init(from input: inout CompactInput) throws(CompactMismatch) {
        try input.beginObject(fields: 2)
        bytes = try input.bytes(forKey: "bytes") { (bytes) throws(CompactMismatch) in
            bytes.withUnsafeBytes { Data($0) }
        }
        width = try input.integer(forKey: "width")
    }
}

struct CompactCodableTests {
    private let coder = ActionCoder<Move>()
    private let moves: [Move] = [
        .stop, .go(at: 0.5, by: -7, far: true, to: "é"), .go(at: -.pi, by: 127, far: false, to: ""),
        .go2(go2: 0), .go2(go2: 14), .go2(go2: 15), .go2(go2: 16), .go2(go2: .max),
        .turn(Move.Turn(left: .min, turn: .max)),
        .go(at: 1, by: 0, far: true, to: String(repeating: "x", count: 400)),
    ]

    @Test func `a handwritten form has Codable's bytes, and is read from them`() throws {
        for move in moves {
            let bytes = try coder.encode(move, as: .compact)
            #expect(try bytes == coder.encodeByTape(move, as: .compact))
            #expect(try coder.decode(bytes[...], as: .compact) == move)
            #expect(try coder.decode(coder.encode(move, as: .json)[...], as: .json) == move)
        }
    }

    @Test func `the bytes are the golden ones`() throws {
        let bytes = try coder.encode(.go2(go2: 20), as: .compact)
        // The format, an object of one member, a key of three bytes, an object of one member, key 0 again, 15 and 5.
        #expect(bytes == [1, 0x81, 6] + Array("go2".utf8) + [0x81, 1, 0x1F, 5])
    }

    @Test func `a value that is too large is left to Codable`() throws {
        let move = Move.go(at: 1, by: 1, far: true, to: String(repeating: "x", count: 10_000))
        let bytes = try coder.encode(move, as: .compact)
        #expect(bytes.count > 10_000)
        #expect(try coder.decode(bytes[...], as: .compact) == move)
        #expect(throws: CodingFailure.self) {
            try ActionCoder<Move>(sizeBytesMax: 16).encode(moves[1], as: .compact)
        }
        #expect(throws: CodingFailure.self) {
            try coder.encode(.go(at: .infinity, by: 1, far: true, to: ""), as: .compact)
        }
    }

    @Test func `fields in another order are read too`() throws {
        var bytes: [UInt8] = [1, 0x81, 8] + Array("turn".utf8) + [0x81, 4] + Array("_0".utf8)
        bytes += [0x82, 1, 0x13, 8] + Array("left".utf8) + [0x12]
        #expect(
            try coder.decode(bytes[...], as: .compact) == .turn(Move.Turn(left: 2, turn: 3)))
    }

    @Test func `Codable explains what is wrong with bytes`() throws {
        let unknown: [UInt8] = [1, 0x81, 8] + Array("jump".utf8) + [0x80]
        #expect(throws: CodingFailure.self) { try coder.decode(unknown[...], as: .compact) }
        for move in moves.prefix(9) { try CodingForms.expectSameWhenBroken(move) }
    }

    @Test func `bytes have Codable's form, as a whole value and as a field`() throws {
        let tick = Tick([1, .max, 0, 7])
        try CodingForms.expectOne(tick)
        try CodingForms.expectSameWhenBroken(tick)
        for count in [0, 1, 14, 15, 16, 300] {
            try CodingForms.expectOne(Image(Data(repeating: 7, count: count), width: -1))
        }
        try CodingForms.expectSameWhenBroken(Image(Data([1, 2, 3]), width: 5))
    }

    @Test func `bytes of another number than a record's are refused`() throws {
        let bytes = try ActionCoder<Data>().encode(Data(repeating: 1, count: 31), as: .compact)
        #expect(throws: CodingFailure.self) {
            try ActionCoder<Tick>().decode(bytes[...], as: .compact)
        }
    }
}
