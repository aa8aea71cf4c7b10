import ConfluxCoding
import ConfluxVocabulary
import Foundation
import Testing

struct JSONValueTests {
    private func canonical(_ text: String) throws -> String {
        try JSONValue(json: text).description
    }

    @Test(arguments: [
        (" { \"b\" : [ 1 , 2.50 , -0 ] , \"a\" : null }\n", #"{"a":null,"b":[1,2.5,0]}"#),
        (#""\u0041\/\u00e9\ud83d\ude00\b\f\n\r\t\u001f\"\\""#, #""A/é😀\b\f\n\r\t\u001f\"\\""#),
        ("[]", "[]"), ("{}", "{}"), ("[true,false]", "[true,false]"),
        ("1e2", "100.0"), ("1E+2", "100.0"), ("-0.0", "-0.0"), ("-0", "0"), ("0.1", "0.1"),
        ("1e-400", "0.0"), ("5e-324", "5e-324"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("18446744073709551615", "18446744073709551615"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
    ])
    func `JSON has one canonical form`(text: String, expected: String) throws {
        #expect(try canonical(text) == expected)
    }

    @Test(arguments: [
        "1e400", "-1e400", "18446744073709551616", "-9223372036854775809",
        "100000000000000000000000000000000000000000",
    ])
    func `a number that would lose digits is refused`(text: String) {
        #expect(failure { try JSONValue(json: text) }?.code == .numberOutOfRange)
    }

    @Test(arguments: [
        ("", 0), ("[1,]", 3), ("{\"a\":1,}", 7), ("[1 2]", 3), ("{a:1}", 1), ("{\"a\" 1}", 5),
        ("01", 1), ("1.", 2), (".5", 0), ("-", 1), ("1e", 2), ("+1", 0), ("NaN", 0),
        ("Infinity", 0), ("-Infinity", 1), ("nul", 3), ("truE", 3), ("'a'", 0), ("\"a", 2),
        ("\"\t\"", 1), ("\"\\x\"", 2), ("\"\\u12g4\"", 5), ("1 1", 2), ("[1]]", 3), ("// 1", 0),
        ("\u{FEFF}1", 0), ("\u{A0}1", 0),
    ])
    func `invalid JSON is refused at the place where it becomes invalid`(text: String, offset: Int)
    {
        let found = failure { try JSONValue(json: text) }
        #expect(found?.code == .syntax)
        #expect(found?.offset == offset)
        #expect(found?.message.hasPrefix("expected ") == true)
    }

    @Test(arguments: [
        #""\ud800""#, #""\udc00""#, #""\ud800\u0041""#, #""\ud800\n""#, #""\ud83d\ud83d\ude00""#,
    ])
    func `half of a surrogate pair is refused`(text: String) {
        #expect(failure { try JSONValue(json: text) }?.code == .invalidText)
    }

    @Test(arguments: [
        [0xFF], [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80], [0x80],
        [0xF0, 0x80, 0x80, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xE2, 0x82],
        [0xF0, 0x9F, 0x98],
    ])
    func `bytes that are not UTF-8 are refused`(bytes: [UInt8]) {
        let found = failure { try JSONValue(json: [0x22] + bytes + [0x22]) }
        #expect(found?.code == .invalidText)
        #expect(found?.offset == 1)
    }

    @Test(arguments: [
        #"{"a":1,"a":2}"#, #"{"a":1,"b":2,"a":3}"#, #"{"a":1,"\u0061":2}"#, #"[{"":0,"":0}]"#,
    ])
    func `a duplicate key is refused`(text: String) {
        #expect(failure { try JSONValue(json: text) }?.code == .duplicateKey)
    }

    @Test func `keys that Unicode calls equal are different keys`() throws {
        let value = try JSONValue(json: "{\"\u{E9}\":1,\"e\u{301}\":2}")
        #expect(value.object?.count == 2)
        #expect(value.object?["\u{E9}"] == 1)
        #expect(value.object?["e\u{301}"] == 2)
        #expect(Array(value.description.utf8) == Array("{\"e\u{301}\":2,\"\u{E9}\":1}".utf8))
        #expect(JSONValue.string("\u{E9}") != .string("e\u{301}"))
    }

    @Test func `keys are sorted by their UTF-8 bytes`() throws {
        // In the order of UTF-16 units, 😀 (D83D …) would come before U+FF5E.
        let value = try JSONValue(json: #"{"😀":1,"～":2,"z":3,"Z":4,"":5,"é":6}"#)
        #expect(value.object?.map(\.key) == ["", "Z", "z", "é", "～", "😀"])
    }

    @Test func `nesting is bounded`() throws {
        let bound = CodingLimits.depthMax
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        let deepest = try JSONValue(json: nested(bound))
        #expect(deepest.depth == bound)
        #expect(deepest.description == nested(bound))
        #expect(failure { try JSONValue(json: nested(bound + 1)) }?.code == .tooDeep)
        let bomb = String(repeating: "{\"a\":[", count: 1 << 18)
        #expect(failure { try JSONValue(json: bomb) }?.code == .tooDeep)
        let deeper = JSONValue.array([deepest])
        #expect(failure { try deeper.canonicalBytes() }?.code == .tooDeep)
        for coding in PayloadCoding.allCases {
            let coder = ActionCoder<JSONValue>()
            #expect(failure { try coder.encode(deeper, as: coding) }?.code == .tooDeep)
        }
    }

    @Test func `the size is bounded`() {
        let found = failure { try JSONValue(json: Array("[1,2,3]".utf8), sizeBytesMax: 6) }
        #expect(found?.code == .tooLarge)
    }

    @Test func `JSON cut off anywhere is refused`() throws {
        let text = #"{"a":[1,-2.5e+3,"é\ud83d\ude00\n",true,false,null],"b":{"c":{}}}"#
        let bytes = Array(text.utf8)
        for end in bytes.indices {
            let found = failure { try JSONValue(json: bytes[..<end]) }
            #expect(found != nil, "\(end) bytes were accepted")
            #expect((found?.offset ?? 0) <= end)
        }
        #expect(throws: Never.self) { try JSONValue(json: bytes) }
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `random values survive every coding`(seed: UInt64) throws {
        var values = RandomValues(seed: seed)
        let coder = ActionCoder<JSONValue>()
        for _ in 0..<500 {
            let value = values.value()
            #expect(try JSONValue(json: value.canonicalBytes()) == value, "seed \(seed)")
            for coding in PayloadCoding.allCases {
                let bytes = try coder.encode(value, as: coding)
                #expect(try coder.decode(bytes[...], as: coding) == value, "seed \(seed)")
            }
            #expect(value.firstDifference(from: value) == nil, "seed \(seed)")
        }
    }

    @Test func `Foundation reads what we write`() throws {
        var values = RandomValues(seed: 9)
        for _ in 0..<100 {
            let value = JSONValue.array([values.value()])
            #expect(throws: Never.self) {
                try JSONSerialization.jsonObject(with: Data(value.canonicalBytes()))
            }
        }
    }

    @Test func `values pass through Foundation's coders`() throws {
        let value: JSONValue = ["a": [1, nil, true, "x", 0.5], "b": ["c": -7]]
        let data = try JSONEncoder().encode(value)
        #expect(try JSONDecoder().decode(JSONValue.self, from: data) == value)
    }

    @Test(arguments: [Double.nan, .infinity, -.infinity])
    func `a number that is not finite can't be encoded`(number: Double) {
        #expect(
            failure { try JSONValue.number(number).canonicalBytes() }?.code == .numberOutOfRange)
    }

    @Test func `equal values have equal hashes, and different values are different`() {
        let one: JSONValue = ["a": 1, "b": [2, "c"]]
        let two: JSONValue = ["b": [2, "c"], "a": 1]
        #expect(one == two)
        #expect(one.hashValue == two.hashValue)
        #expect(JSONValue.integer(1) != .number(1))
        #expect(Set<JSONValue>([one, two, 1, 1.0, "1"]).count == 4)
    }
}

struct JSONObjectTests {
    @Test(arguments: [1, 2] as [UInt64])
    func `a large object is a sorted map`(seed: UInt64) {
        var values = RandomValues(seed: seed)
        var object = JSONObject()
        var expected: [String: Int] = [:]
        for step in 0..<20_000 {
            let key = String(values.number(below: 4_000))
            if values.number(below: 3) == 0 {
                let removed = object.remove(key)
                #expect(removed == expected.removeValue(forKey: key).map { .integer(.init($0)) })
            } else {
                object[key] = .integer(JSONInteger(step))
                expected[key] = step
            }
        }
        #expect(object.count == expected.count)
        #expect(object.map(\.key) == expected.keys.sorted())
        #expect(expected.allSatisfy { object[$0.key] == .integer(JSONInteger($0.value)) })
    }

    @Test func `a copy does not change when its original changes`() {
        var object = JSONObject()
        for number in 0..<1_000 { object["k\(number)"] = 1 }
        let copy = object
        object["k5"] = 2
        object["new"] = 3
        #expect(copy["k5"] == 1)
        #expect(copy["new"] == nil)
        #expect(copy.count == 1_000)
        #expect(object.count == 1_001)
    }
}
