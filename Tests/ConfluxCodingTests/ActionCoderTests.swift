import ConfluxCoding
import ConfluxVocabulary
import Synchronization
import Testing

private enum Action: Codable, Hashable, Sendable, NamedActions {
    case increment
    case add(amount: Int)
    case move(_ to: Place, by: Double?)
    case tag([Place])

    static var actionNames: [String] { ["increment", "add", "move", "tag"] }
}

private struct Place: Codable, Hashable, Sendable {
    var name: String
    var left: Int?
}

private enum Unnamed: Codable, Sendable { case one, two(value: Int) }

struct ActionCoderTests {
    private let coder = ActionCoder<Action>()

    private func decode(_ text: String) throws -> Action {
        try coder.decode(Array(text.utf8)[...], as: .json)
    }

    @Test(arguments: PayloadCoding.allCases)
    func `actions survive`(coding: PayloadCoding) throws {
        let actions: [Action] = [
            .increment, .add(amount: .min), .add(amount: .max), .move(Place(name: "é"), by: nil),
            .move(Place(name: "", left: -1), by: 0.1),
            .tag((0..<100).map { (number: Int) in Place(name: "n\(number)", left: number) }),
        ]
        for action in actions {
            let bytes = try coder.encode(action, as: coding)
            #expect(try coder.decode(bytes[...], as: coding) == action)
            // A slice of a larger frame, whose indices don't begin at 0.
            let frame = [0xFF, 0xFF] + bytes + [0xFF]
            #expect(try coder.decode(frame[2..<(2 + bytes.count)], as: coding) == action)
        }
    }

    /// An action that counts its living instances.
    private final class Counted: Codable, Sendable {
        static let alive = Mutex(0)
        let number: Int

        init(from decoder: any Decoder) throws {
            number = try decoder.singleValueContainer().decode(Int.self)
            Self.alive.withLock { $0 += 1 }
        }

        deinit { Self.alive.withLock { $0 -= 1 } }
    }

    @Test func `several threads decode what one does, up to the first that can't be decoded`() {
        let coder = ActionCoder<Counted>()
        let shareSize = ActionCoder<Counted>.shareSize
        let counts = [1, shareSize, shareSize + 1, 5 * shareSize]
        for (count, broken) in counts.flatMap({ count in
            [[], [0], [count / 2], [count - 1], [0, count - 1]].map { (count, $0) }
        }) {
            var bytes: [UInt8] = []
            var payloads: [Range<Int>] = []
            for number in 0..<count {
                let start = bytes.count
                bytes += Array((broken.contains(number) ? "no" : "\(number)").utf8)
                payloads.append(start..<bytes.count)
            }
            let room = UnsafeMutablePointer<Counted>.allocate(capacity: count)
            defer { room.deallocate() }
            let decoded = bytes.withUnsafeBufferPointer {
                coder.decode(payloads, of: $0, as: .json, into: room)
            }
            #expect(decoded == broken.first ?? count)
            #expect((0..<decoded).map { room[$0].number } == Array(0..<decoded))
            #expect(Counted.alive.withLock { $0 } == decoded)
            room.deinitialize(count: decoded)
        }
    }

    @Test func `an action is readable in JSON`() throws {
        let bytes = try coder.encode(.add(amount: 5), as: .json)
        #expect(String(decoding: bytes, as: UTF8.self) == #"{"add":{"amount":5}}"#)
    }

    @Test func `the compact coding follows its grammar`() throws {
        let bytes = try coder.encode(.add(amount: 5), as: .compact)
        #expect(
            bytes == [0x01, 0x81, 6] + Array("add".utf8) + [0x81, 12] + Array("amount".utf8) + [
                0x15
            ])
        let negative = try coder.encode(.add(amount: -20), as: .compact)
        #expect(negative.suffix(2) == [0x2F, 4])
    }

    @Test func `the compact coding names a field once`() throws {
        let action = Action.tag((0..<50).map { Place(name: "n", left: $0) })
        let json = try coder.encode(action, as: .json)
        let compact = try coder.encode(action, as: .compact)
        #expect(compact.count * 3 < json.count)
    }

    @Test(arguments: [
        (#"{"incr":{}}"#, #"expected one of: add, increment, move, tag; found "incr""#),
        (#"{"add":{"amount":1},"increment":{}}"#, "found \"add\", \"increment\""),
        ("{}", "expected one of: add, increment, move, tag; found none"),
        ("5", "expected one of: add, increment, move, tag; found a whole number"),
    ])
    func `a wrong name gets a list of the right ones`(text: String, message: String) {
        let found = failure { try decode(text) }
        #expect(found?.code == .unknownAction)
        #expect(found?.message.contains(message) == true, "\(found as Any)")
    }

    @Test(arguments: [
        (
            #"{"add":{"amount":1,"amuont":2}}"#, CodingFailure.Code.unknownField,
            "at /add: there is no field"
        ),
        (#"{"increment":{"by":2}}"#, .unknownField, "\"by\""),
        (#"{"add":{}}"#, .missingField, #"at /add: expected a field "amount""#),
        (
            #"{"add":{"amount":"1"}}"#, .wrongType,
            "at /add/amount: expected a whole number, found a string"
        ),
        (#"{"add":{"amount":1.5}}"#, .invalidValue, "expected a whole number from"),
        (#"{"add":{"amount":9223372036854775808}}"#, .invalidValue, "expected a whole number from"),
        (#"{"add":5}"#, .wrongType, "at /add: expected an object, found a whole number"),
        (#"{"increment":null}"#, .wrongType, "expected an object, found null"),
        (#"{"tag":{"_0":[{"name":"a"},{"nam":"b"}]}}"#, .missingField, "at /tag/_0/1: "),
        (#"{"tag":{"_0":[{"name":"a","x":1}]}}"#, .unknownField, "at /tag/_0/0: there is no field"),
        (#"{"add":{"amount":1}"#, .syntax, "expected ',' or '}', found the end"),
    ])
    func `a wrong action is explained`(text: String, code: CodingFailure.Code, message: String) {
        let found = failure { try decode(text) }
        #expect(found?.code == code)
        #expect(found?.message.contains(message) == true, "\(found as Any)")
    }

    @Test func `several actions in one object are refused even if their names are not known`() {
        let coder = ActionCoder<Unnamed>()
        let text = Array(#"{"one":{},"two":{"value":1}}"#.utf8)
        #expect(failure { try coder.decode(text[...], as: .json) }?.code == .unknownAction)
        let unknown = Array(#"{"one":{},"three":{}}"#.utf8)
        #expect(failure { try coder.decode(unknown[...], as: .json) }?.code == .unknownField)
    }

    @Test(arguments: [
        ("increment", #"{"increment":{}}"#), ("  increment\n", #"{"increment":{}}"#),
        (#"{"add":{"amount":1}}"#, #"{"add":{"amount":1}}"#), ("null", "null"), ("5", "5"),
        ("a b", "a b"), ("", ""), ("\"increment\"", "\"increment\""), ("_x9", #"{"_x9":{}}"#),
    ])
    func `a bare name is an action without fields`(text: String, json: String) {
        #expect(String(decoding: ActionText.json(commandLine: text), as: UTF8.self) == json)
    }

    @Test func `a bare name is decoded`() throws {
        #expect(try coder.decode(commandLine: "increment") == .increment)
        #expect(failure { try coder.decode(commandLine: "add") }?.code == .missingField)
        #expect(failure { try coder.decode(commandLine: "incremen") }?.code == .unknownAction)
    }

    @Test func `a payload has a bound`() {
        let coder = ActionCoder<String>(sizeBytesMax: 10)
        let long = String(repeating: "x", count: 9)
        #expect(failure { try coder.encode(long, as: .json) }?.code == .tooLarge)
        #expect(
            failure { try coder.decode(Array("\"\(long)\"".utf8)[...], as: .json) }?.code
                == .tooLarge)
        #expect(
            failure { try coder.decode([UInt8](repeating: 1, count: 11)[...], as: .compact) }?.code
                == .tooLarge)
    }
}

struct CompactFuzzTests {
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `random bytes end in an error or a value`(seed: UInt64) throws {
        var values = RandomValues(seed: seed)
        let (actions, free) = (ActionCoder<Action>(), ActionCoder<JSONValue>())
        for _ in 0..<8_000 {
            let bytes = [1] + values.bytes(values.number(below: 40))
            _ = failure { try actions.decode(bytes[...], as: .compact) }
            // An accepted value can be encoded again.
            if let value = try? free.decode(bytes[...], as: .compact) {
                let again = try free.encode(value, as: .compact)
                #expect(try free.decode(again[...], as: .compact) == value, "seed \(seed)")
            }
            _ = failure { try actions.decode(bytes[...], as: .json) }
        }
    }

    @Test func `changed and truncated payloads decode to an error or a value`() throws {
        var values = RandomValues(seed: 5)
        let coder = ActionCoder<JSONValue>()
        for _ in 0..<300 {
            let bytes = try coder.encode(values.value(), as: .compact)
            for end in bytes.indices {
                #expect(failure { try coder.decode(bytes[..<end], as: .compact) } != nil)
            }
            let json = try coder.encode(values.value(), as: .json)
            for _ in 0..<30 {
                var changed = bytes
                changed[values.number(below: bytes.count)] = values.bytes(1)[0]
                _ = failure { try coder.decode(changed[...], as: .compact) }
                changed = json
                changed[values.number(below: json.count)] = values.bytes(1)[0]
                // Bytes that are still JSON have a canonical form, which is its own canonical form.
                if let value = try? coder.decode(changed[...], as: .json) {
                    let canonical = try value.canonicalBytes()
                    #expect(try JSONValue(json: canonical).canonicalBytes() == canonical)
                }
            }
        }
    }

    @Test(
        arguments: [
            // Counts and lengths far beyond the remaining bytes.
            [0x01, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
            [0x01, 0x7F, 0xF0, 0xFF, 0xFF, 0xFF, 0x0F], [0x01, 0x8F, 0xF0, 0xFF, 0xFF, 0xFF, 0x0F],
            [0x01, 0x5F, 0xF0, 0xFF, 0xFF, 0xFF, 0x0F], [0x01, 0x6F, 0xF0, 0xFF, 0xFF, 0xFF, 0x0F],
            // No kind, no format, nothing, too much.
            [0x01, 0x90], [0x02, 0x00], [], [0x01], [0x01, 0x00, 0x00], [0x01, 0x03],
            // A varint that is too long, or longer than necessary; a number below -2^63.
            [0x01, 0x1F, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02],
            [0x01, 0x1F, 0x80, 0x00],
            [0x01, 0x2F, 0xF1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
            [0x01, 0x2F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
            // A key without a number, a duplicate key, an invalid text, NaN.
            [0x01, 0x81, 0x01, 0x00], [0x01, 0x82, 0x02, 0x61, 0x00, 0x01, 0x00],
            [0x01, 0x51, 0xFF], [0x01, 0x30, 0, 0, 0, 0, 0, 0, 0xF8, 0x7F],
        ] as [[UInt8]])
    func `bytes that are not the compact coding are refused`(bytes: [UInt8]) {
        let found = failure { try ActionCoder<JSONValue>().decode(bytes[...], as: .compact) }
        #expect(found != nil)
    }

    @Test func `compact nesting is bounded as that of JSON is`() throws {
        let coder = ActionCoder<JSONValue>()
        let bound = CodingLimits.depthMax
        let deepest = [1] + [UInt8](repeating: 0x71, count: bound - 1) + [0x70]
        #expect(try coder.decode(deepest[...], as: .compact).depth == bound)
        let deeper = [1] + [UInt8](repeating: 0x71, count: bound) + [0x70]
        #expect(failure { try coder.decode(deeper[...], as: .compact) }?.code == .tooDeep)
        let bomb = [1] + [UInt8](repeating: 0x71, count: 1_000_000) + [0]
        let found = failure { try ActionCoder<JSONValue>().decode(bomb[...], as: .compact) }
        #expect(found?.code == .tooDeep)
    }
}
