import ConfluxCoding
import Testing

struct JSONPointerTests {
    /// The example of RFC 6901, section 5.
    private static let example = """
        {"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\\\j":5,"k\\"l":6," ":7,"m~n":8}
        """

    @Test(arguments: [
        ("/foo", #"["bar","baz"]"#), ("/foo/0", #""bar""#), ("/", "0"), ("/a~1b", "1"),
        ("/c%d", "2"), ("/e^f", "3"), ("/g|h", "4"), ("/i\\j", "5"), ("/k\"l", "6"), ("/ ", "7"),
        ("/m~0n", "8"),
    ])
    func `the RFC's examples`(text: String, expected: String) throws {
        let pointer = try JSONPointer(text)
        #expect(try JSONValue(json: Self.example)[pointer] == JSONValue(json: expected))
        #expect(pointer.description == text)
    }

    @Test func `the empty pointer is the whole value`() throws {
        let value = try JSONValue(json: Self.example)
        #expect(value[JSONPointer("")] == value)
        let text = ""
        #expect(try JSONPointer(text) == .root)
    }

    @Test(arguments: [
        "/foo/2", "/foo/-", "/foo/01", "/foo/+1", "/foo/1e0", "/foo/ 1", "/foo/",
        "/foo/٣", "/nothing", "/a~1b/0", "/foo/99999999999999999999",
    ])
    func `a missing place has no value`(text: String) throws {
        #expect(try JSONValue(json: Self.example)[JSONPointer(text)] == nil)
    }

    @Test(arguments: [("a", 0), ("/a~", 2), ("/a~2", 2), ("/~~0", 1), (" /a", 0)])
    func `text that is not a pointer is refused`(text: String, offset: Int) {
        let found = failure { try JSONPointer(text) }
        #expect(found?.code == .syntax)
        #expect(found?.offset == offset)
    }

    @Test func `~01 is the key ~1`() {
        #expect(JSONPointer("/~01").tokens == ["~1"])
    }

    @Test func `a combining mark after a slash does not hide it`() {
        let pointer: JSONPointer = "/\u{301}a/b"
        #expect(pointer.tokens.count == 2)
        #expect(pointer != "/b")
    }

    @Test func `pointers that Unicode calls equal are different`() {
        #expect(JSONPointer("/\u{E9}") != JSONPointer("/e\u{301}"))
    }
}

struct MergePatchTests {
    /// RFC 7386, appendix A: original, patch, result.
    @Test(arguments: [
        (#"{"a":"b"}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
        (#"{"a":"b"}"#, #"{"b":"c"}"#, #"{"a":"b","b":"c"}"#),
        (#"{"a":"b"}"#, #"{"a":null}"#, #"{}"#),
        (#"{"a":"b","b":"c"}"#, #"{"a":null}"#, #"{"b":"c"}"#),
        (#"{"a":["b"]}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
        (#"{"a":"c"}"#, #"{"a":["b"]}"#, #"{"a":["b"]}"#),
        (#"{"a":{"b":"c"}}"#, #"{"a":{"b":"d","c":null}}"#, #"{"a":{"b":"d"}}"#),
        (#"{"a":[{"b":"c"}]}"#, #"{"a":[1]}"#, #"{"a":[1]}"#),
        (#"["a","b"]"#, #"["c","d"]"#, #"["c","d"]"#),
        (#"{"a":"b"}"#, #"["c"]"#, #"["c"]"#),
        (#"{"a":"foo"}"#, "null", "null"),
        (#"{"a":"foo"}"#, #""bar""#, #""bar""#),
        (#"{"e":null}"#, #"{"a":1}"#, #"{"e":null,"a":1}"#),
        (#"[1,2]"#, #"{"a":"b","c":null}"#, #"{"a":"b"}"#),
        (#"{}"#, #"{"a":{"bb":{"ccc":null}}}"#, #"{"a":{"bb":{}}}"#),
    ])
    func `the RFC's examples`(original: String, patch: String, result: String) throws {
        var value = try JSONValue(json: original)
        value.merge(patch: try JSONValue(json: patch))
        #expect(value == (try JSONValue(json: result)))
    }
}

struct FirstDifferenceTests {
    @Test(arguments: [
        ("1", "2", ""), (#"{"a":1}"#, #"{"a":2}"#, "/a"), (#"{"a":1}"#, #"{"b":1}"#, "/a"),
        (#"{"a":[1,{"b":2}]}"#, #"{"a":[1,{"b":3}]}"#, "/a/1/b"), ("[1]", "[1,2]", "/1"),
        (#"{"a":1}"#, #"{"a":1,"b":2}"#, "/b"), ("1", "1.0", ""), (#"{"a/b":1}"#, "{}", "/a~1b"),
    ])
    func `the first difference is found`(left: String, right: String, expected: String) throws {
        let (left, right) = (try JSONValue(json: left), try JSONValue(json: right))
        #expect(left.firstDifference(from: right)?.description == expected)
        #expect(right.firstDifference(from: left)?.description == expected)
    }
}
