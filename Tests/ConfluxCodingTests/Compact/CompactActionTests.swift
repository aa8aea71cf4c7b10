import ConfluxCoding
import Foundation
import Testing

/// The actions of a counter, by the macro and by hand.
@CompactAction
private enum Derived: Codable, Hashable, Sendable {
    case increment
    case decrement
    case add(amount: Int)
    case sell(seat: String, at: Double)
}

private enum Handwritten: CompactCodable, Hashable, Sendable {
    case increment
    case decrement
    case add(amount: Int)
    case sell(seat: String, at: Double)

    func write(to output: inout CompactOutput) {
        switch self {
        case .increment: output.beginCase("increment", fields: 0)
        case .decrement: output.beginCase("decrement", fields: 0)
        case .add(let amount):
            output.beginCase("add", fields: 1)
            output.write(amount, forKey: "amount")
        case .sell(let seat, let price):
            output.beginCase("sell", fields: 2)
            output.write(price, forKey: "at")
            output.write(seat, forKey: "seat")
        }
    }

    init(from input: inout CompactInput) throws(CompactMismatch) {
        if input.isCase("add", fields: 1) {
            self = .add(amount: try input.integer(forKey: "amount"))
        } else if input.isCase("sell", fields: 2) {
            let price = try input.double(forKey: "at")
            self = .sell(seat: try input.string(forKey: "seat"), at: price)
        } else if input.isCase("increment", fields: 0) {
            self = .increment
        } else if input.isCase("decrement", fields: 0) {
            self = .decrement
        } else {
            throw CompactMismatch()
        }
    }
}

/// Has every type of field, and every way to declare one.
@CompactAction
struct Whole: Codable, Hashable, Sendable {
    static let version = 3
    var yes: Bool
    var small: Int8, large: UInt64
    let single: Float
    var double = 0.5, count: Int? = nil  // A comment, with "a text" and a { bracket.
    var text: String {
        didSet { count = text.count }
    }
    var data = Data()
    var date: Date
    let id: UUID
    var note: Optional<String>
    var parts: [Part]
    var rows: [[Int]]?
    /* A comment /* within another one */ in the middle. */
    var color: Color
    var `default`: Kind
    var isLarge: Bool { large > 10 }
    var words: [String] {
        get { [text] }
        set { text = newValue.joined(separator: " \("(")") }
    }

    init() {
        (yes, small, large, single, text) = (true, -7, .max, 0.1, "é")
        (date, id, note) = (Date(timeIntervalSinceReferenceDate: 0.5), UUID(), nil)
        (parts, rows, color, self.default) = (
            [Part(a: 1), Part(a: 2)], [[], [1, -1]], .red, .plain
        )
    }

    @CompactAction
    struct Part: Codable, Hashable, Sendable {
        var a: Int
        func doubled() -> Part { Part(a: 2 * a) }
    }

    @CompactAction
    enum Color: String, Codable, Sendable {
        case red
        case green = "verde"
    }

    @CompactAction
    enum Kind: Codable, Hashable, Sendable {
        case plain, `case`(`in`: Int)
        case mixed(_ first: Int, String?, [Part] = [])
        indirect case nested(Kind)
        static let all: [Kind] = [.plain, .case(in: 3), .nested(.nested(.plain))]
    }
}

@CompactAction
private enum Number: UInt8, Codable, Sendable { case one = 1, two }

@CompactAction
private struct Empty: Codable, Hashable, Sendable {}

@CompactAction
private indirect enum Deep: Codable, Hashable, Sendable {
    case end
    case more(Deep)
}

/// The macro's coding.
struct CompactActionTests {
    @Test func `the bytes are those of the same type by hand`() throws {
        let derived: [Derived] = [
            .increment, .decrement, .add(amount: -5), .sell(seat: "A1", at: 2.5),
        ]
        let hand: [Handwritten] = [
            .increment, .decrement, .add(amount: -5), .sell(seat: "A1", at: 2.5),
        ]
        for (derived, hand) in zip(derived, hand) {
            let bytes = try ActionCoder<Derived>().encode(derived, as: .compact)
            #expect(try bytes == ActionCoder<Handwritten>().encode(hand, as: .compact))
            try CodingForms.expectOne(derived)
            try CodingForms.expectSameWhenBroken(derived)
        }
        #expect(
            try ActionCoder<Derived>().encode(.add(amount: 5), as: .compact)
                == [1, 0x81, 6] + Array("add".utf8) + [0x81, 12] + Array("amount".utf8) + [0x15])
    }

    @Test func `every type of field has Codable's form`() throws {
        try CodingForms.expectOne(Whole.Part(a: 3))
        try CodingForms.expectOne(Empty())
        for color in [Whole.Color.red, .green] { try CodingForms.expectOne(color) }
        for number in [Number.one, .two] { try CodingForms.expectOne(number) }
        for kind in Whole.Kind.all { try CodingForms.expectOne(kind) }
        for note in [nil, "", "seen"] {
            let kind = Whole.Kind.mixed(1, note, [Whole.Part(a: 1)])
            try CodingForms.expectOne(kind)
            try CodingForms.expectSameWhenBroken(kind)
        }
        try CodingForms.expectSameWhenBroken(Whole.Color.green)
    }

    @Test func `a value with more keys than the form has is left to Codable`() throws {
        let coder = ActionCoder<Whole>()
        var value = Whole()
        for note in [nil, "a"] {
            value.note = note
            let bytes = try coder.encode(value, as: .compact)
            #expect(try bytes == coder.encodeByTape(value, as: .compact))
            #expect(try coder.decode(bytes[...], as: .compact) == value)
        }
    }

    @Test func `a value of any depth ends in a value or an error`() throws {
        let coder = ActionCoder<Deep>()
        var value = Deep.end
        for _ in 0..<50 { value = .more(value) }
        try CodingForms.expectOne(value)
        for depth in [100, 100_000] {
            let member = [UInt8(0x81), 1, 0x81, 3]
            var bytes: [UInt8] = [1, 0x81, 8] + Array("more".utf8) + [0x81, 4] + Array("_0".utf8)
            for _ in 0..<depth { bytes += member }
            bytes += [0x81, 6] + Array("end".utf8) + [0x80]
            let quick = Result { () throws(CodingFailure) in
                try coder.decode(bytes[...], as: .compact)
            }
            let plain = bytes.withUnsafeBufferPointer { bytes in
                Result { () throws(CodingFailure) in try coder.decodeByTape(bytes, as: .compact) }
            }
            #expect(quick == plain)
        }
    }

    @Test func `a number of elements that is not true is refused`() throws {
        let coder = ActionCoder<[UInt8]>()
        let untrue: [[UInt8]] = [
            [1, 0x7F, 0xFF, 0xFF, 0xFF, 0x7F, 0x11], [1, 0x72, 0x11], [1, 0x71, 0x11, 0x11],
        ]
        for bytes in untrue {
            #expect(throws: CodingFailure.self) { try coder.decode(bytes[...], as: .compact) }
        }
        try CodingForms.expectOne([[1, 2], [], [3]])
    }
}
