import ConfluxCoding
import ConfluxVocabulary
import Foundation
import Testing

private struct Point: Codable, Hashable {
    var x: Int
    var y: Int
}

private struct Everything: Codable, Equatable {
    var byte: Int8 = -128
    var small: UInt16 = 65_535
    var least = Int64.min
    var most = UInt64.max
    var single: Float = 0.1
    var tiny = Float.leastNonzeroMagnitude
    var double = 0.1
    var whole = 5.0
    var zero = -0.0
    var flag = true
    var text = "é\u{0}\"\\😀"
    var missing: Int?
    var present: Int? = 3
    var date = Date(timeIntervalSinceReferenceDate: 700_000_000.123456)
    var data = Data([0, 1, 254, 255])
    var link = URL(string: "https://example.org/a?b=c#d")
    var amount = Decimal(string: "12345678901234567890.123456789")
    var identifier = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
    var points: Set<Point> = [Point(x: 2, y: 1), Point(x: 10, y: 0)]
    var grid: [Point: [Set<Int>]] = [Point(x: 1, y: 1): [[3, 1, 2]], Point(x: 0, y: 9): []]
    var names: [String: Int] = ["b": 1, "a": 2, "é": 3]
    var numbers: [Int: String] = [10: "x", 9: "y"]
    var nested: [[Point?]] = [[nil, Point(x: 0, y: 0)], []]
    var free: JSONValue = ["n": 18_446_744]
}

private class Animal: Codable {
    var legs = 4
}

private final class Dog: Animal {
    var name = "Rex"

    override init() { super.init() }

    private enum Keys: CodingKey { case name }

    required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        try super.init(from: container.superDecoder())
        name = try container.decode(String.self, forKey: .name)
    }

    override func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(name, forKey: .name)
        try super.encode(to: container.superEncoder())
    }
}

struct CanonicalCoderTests {
    private let encoder = CanonicalCoder()
    private let decoder = CanonicalCoder()

    private func text(_ value: some Encodable) throws -> String {
        String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    @Test func `everything that Codable has survives`() throws {
        let value = Everything()
        let bytes = try encoder.encode(value)
        #expect(try decoder.decode(Everything.self, from: bytes) == value)
        // A decoded value has the same bytes when it is encoded again.
        let again = try encoder.encode(decoder.decode(Everything.self, from: bytes))
        #expect(again == bytes)
        #expect(try JSONValue(json: bytes).canonicalBytes() == bytes)
    }

    @Test func `everything survives the compact coding`() throws {
        let coder = ActionCoder<Holder>()
        let bytes = try coder.encode(Holder(), as: .compact)
        #expect(try coder.decode(bytes[...], as: .compact).value == Everything())
    }

    private struct Holder: Codable, @unchecked Sendable {  // immutable
        var value = Everything()
    }

    @Test func `fields are sorted and numbers keep their kind`() throws {
        struct Value: Encodable {
            var b = 1.0
            var a = 1
            var c = Float(0.1)
        }
        #expect(try text(Value()) == #"{"a":1,"b":1.0,"c":0.1}"#)
    }

    @Test func `sets and dictionaries have one order however they came about`() throws {
        let expected = try text(Set((0..<100).map { Point(x: $0, y: -$0) }))
        for seed in 1...20 as ClosedRange<UInt64> {
            var random = SplitMix64(seed: seed)
            var points = Set<Point>(minimumCapacity: Int(seed) * 37)
            for number in (0..<100).shuffled(using: &random) {
                points.insert(Point(x: number, y: -number))
            }
            #expect(try text(points) == expected, "seed \(seed)")
            #expect(try text([1: [points]]) == "{\"1\":[\(expected)]}", "seed \(seed)")
            #expect(try text(Optional(points)) == expected, "seed \(seed)")
        }
    }

    @Test func `keys are in the order of their bytes, however long they are`() throws {
        for seed in 1...20 as ClosedRange<UInt64> {
            var random = SplitMix64(seed: seed)
            var keys: Set<String> = ["", "\0", "\0\0", "aaaaaaaa", "aaaaaaaa\0", "aaaaaaaaé"]
            for _ in 0..<200 {
                let letters = (0..<Int.random(in: 1...12, using: &random)).map { _ in
                    ["\0", "a", "b", "é", "z"].randomElement(using: &random) ?? ""
                }
                keys.insert(letters.joined())
            }
            let members = keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            let expected = try members.map { try text($0) + ":0" }.joined(separator: ",")
            let table = Dictionary(uniqueKeysWithValues: keys.map { ($0, 0) })
            #expect(try text(table) == "{\(expected)}", "seed \(seed)")
        }
    }

    @Test func `dictionaries with keys that are not strings are sorted wherever they are nested`()
        throws
    {
        struct Value: Codable { var inner: [[Point: Set<String>]] }
        var texts: Set<String> = []
        for seed in 1...20 as ClosedRange<UInt64> {
            var random = SplitMix64(seed: seed)
            var table: [Point: Set<String>] = [:]
            for number in (0..<30).shuffled(using: &random) {
                table[Point(x: number, y: 0)] = Set(["x", "y", "z", "é"].shuffled(using: &random))
            }
            texts.insert(try text(Value(inner: [table])))
        }
        #expect(texts.count == 1)
    }

    @Test func `equal decimals have equal bytes`() throws {
        let one = Decimal(string: "1.50") ?? 0
        let two = (Decimal(string: "3") ?? 0) / 2
        #expect(one == two)
        #expect(try text([one]) == text([two]))
        #expect(try text([one]) == #"["1.5"]"#)
        #expect(
            try decoder.decode([Decimal].self, from: Array("[0.1,2,\"3.5\"]".utf8))
                == [Decimal(string: "0.1"), 2, Decimal(string: "3.5")])
        #expect(failure { try decoder.decode([Decimal].self, from: Array(#"["1x"]"#.utf8)) } != nil)
    }

    @Test(arguments: [Double.nan, .infinity, -.infinity])
    func `a number that is not finite is a typed error`(number: Double) {
        #expect(failure { try encoder.encode(["a": number]) }?.code == .numberOutOfRange)
        #expect(failure { try encoder.encode([Float(number)]) }?.code == .numberOutOfRange)
        #expect(
            failure { try ActionCoder<[Double]>().encode([number], as: .compact) }?.code
                == .numberOutOfRange)
    }

    @Test func `random floats survive in their shortest form`() throws {
        var random = SplitMix64(seed: 4)
        for _ in 0..<2_000 {
            let value = Float(bitPattern: UInt32(truncatingIfNeeded: random.next()))
            guard value.isFinite else { continue }
            let bytes = try encoder.encode([value])
            #expect(try decoder.decode([Float].self, from: bytes) == [value])
        }
    }

    @Test func `a subclass survives encoding`() throws {
        let bytes = try encoder.encode(Dog())
        #expect(String(decoding: bytes, as: UTF8.self) == #"{"name":"Rex","super":{"legs":4}}"#)
        #expect(try decoder.decode(Dog.self, from: bytes).legs == 4)
    }

    @Test func `fields that nobody asks for are ignored`() throws {
        let value = try decoder.decode(Point.self, from: Array(#"{"x":1,"y":2,"z":3}"#.utf8))
        #expect(value == Point(x: 1, y: 2))
    }

    @Test func `a value too deep for its type is refused in both directions`() {
        indirect enum Chain: Codable { case end, link(Chain) }
        var chain = Chain.end
        for _ in 0..<200 { chain = .link(chain) }
        #expect(failure { try encoder.encode(chain) }?.code == .tooDeep)
        let text = String(repeating: "[", count: 300) + String(repeating: "]", count: 300)
        struct Nest: Decodable {
            init(from decoder: any Decoder) throws {
                var container = try decoder.unkeyedContainer()
                while !container.isAtEnd { _ = try container.decode(Nest.self) }
            }
        }
        #expect(failure { try decoder.decode(Nest.self, from: Array(text.utf8)) }?.code == .tooDeep)
    }

    @Test func `an encoder that is kept sees nothing of later uses`() throws {
        final class Kept: @unchecked Sendable { var container: (any SingleValueEncodingContainer)? }
        struct Keeper: Encodable {
            let kept: Kept
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode("first")
                kept.container = container
            }
        }
        let kept = Kept()
        #expect(try text(Keeper(kept: kept)) == "\"first\"")
        struct Writer: Encodable {
            let kept: Kept
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode("second")
                try kept.container?.encode("late")
            }
        }
        #expect(try text(Writer(kept: kept)) == "\"second\"")
    }
}
