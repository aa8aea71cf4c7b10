import Conflux
import ConfluxBuiltins
import Testing

struct DocumentTests {
    private let coder = ActionCoder<Document.Action>()
    private let context = ActionContext()

    private func document(_ text: String) throws -> Document {
        try CanonicalCoder().decode(Document.self, from: Array(text.utf8))
    }

    /// Checks and applies an action in JSON.
    private func apply(_ action: String, to text: String) throws -> String {
        var document = try document(text)
        let action = try coder.decode(commandLine: action)
        try document.check(action, context)
        document.apply(action, context)
        return String(decoding: try CanonicalCoder().encode(document), as: UTF8.self)
    }

    @Test func `a new document is an empty object`() throws {
        #expect(try CanonicalCoder().encode(Document()) == Array("{}".utf8))
    }

    @Test(arguments: [
        ("{}", #"{"set":{"at":"/a/b","value":1}}"#, #"{"a":{"b":1}}"#),
        ("{}", #"{"set":{"at":"","value":[1]}}"#, "[1]"),
        ("{}", #"{"set":{"at":"/a/0/-","value":1}}"#, #"{"a":{"0":{"-":1}}}"#),
        (#"{"a":1}"#, #"{"set":{"at":"/a","value":null}}"#, #"{"a":null}"#),
        (#"{"a":[1,2]}"#, #"{"set":{"at":"/a/0","value":3}}"#, #"{"a":[3,2]}"#),
        (#"{"a":[1,2]}"#, #"{"set":{"at":"/a/2","value":3}}"#, #"{"a":[1,2,3]}"#),
        (#"{"a":[1,2]}"#, #"{"set":{"at":"/a/-","value":3}}"#, #"{"a":[1,2,3]}"#),
        (#"{"a":[]}"#, #"{"set":{"at":"/a/-/b","value":3}}"#, #"{"a":[{"b":3}]}"#),
        ("{}", #"{"set":{"at":"/","value":18446744073709551615}}"#, #"{"":18446744073709551615}"#),
        (
            #"{"a":1}"#, #"{"merge":{"at":"","value":{"b":{"c":null,"d":2}}}}"#,
            #"{"a":1,"b":{"d":2}}"#
        ),
        ("{}", #"{"merge":{"at":"/a/b","value":{"c":1,"d":null}}}"#, #"{"a":{"b":{"c":1}}}"#),
        (#"{"a":"x"}"#, #"{"merge":{"at":"/a","value":{"c":1}}}"#, #"{"a":{"c":1}}"#),
        (#"{"a":1,"b":2}"#, #"{"remove":{"at":"/a"}}"#, #"{"b":2}"#),
        (#"{"a":[1,2,3]}"#, #"{"remove":{"at":"/a/1"}}"#, #"{"a":[1,3]}"#),
        (#"{"a":[{"b":null}]}"#, #"{"remove":{"at":"/a/0/b"}}"#, #"{"a":[{}]}"#),
        ("{}", #"{"increment":{"at":"/n","by":1}}"#, #"{"n":1}"#),
        ("{}", #"{"increment":{"at":"/n/m","by":0.5}}"#, #"{"n":{"m":0.5}}"#),
        (#"{"n":5}"#, #"{"increment":{"at":"/n","by":-7}}"#, #"{"n":-2}"#),
        (#"{"n":5}"#, #"{"increment":{"at":"/n","by":0.5}}"#, #"{"n":5.5}"#),
        (#"{"n":0.5}"#, #"{"increment":{"at":"/n","by":1}}"#, #"{"n":1.5}"#),
        (
            #"{"n":9223372036854775807}"#, #"{"increment":{"at":"/n","by":1}}"#,
            #"{"n":9223372036854775808}"#
        ),
        ("{}", #"{"append":{"at":"/list","value":{"x":1}}}"#, #"{"list":[{"x":1}]}"#),
        (#"{"list":[1]}"#, #"{"append":{"at":"/list","value":[2]}}"#, #"{"list":[1,[2]]}"#),
        (#"{"list":[[1]]}"#, #"{"append":{"at":"/list/0","value":2}}"#, #"{"list":[[1,2]]}"#),
        (#"{"list":[]}"#, #"{"append":{"at":"/list/-","value":2}}"#, #"{"list":[[2]]}"#),
    ])
    func `an action changes the document`(before: String, action: String, after: String) throws {
        #expect(try apply(action, to: before) == after)
    }

    @Test(arguments: [
        (#"{"a":"x"}"#, #"{"set":{"at":"/a/b","value":1}}"#, DocumentRefusal.Code.doesNotFit),
        (#"{"a":null}"#, #"{"set":{"at":"/a/b","value":1}}"#, .doesNotFit),
        (#"{"a":5}"#, #"{"merge":{"at":"/a/b","value":{}}}"#, .doesNotFit),
        (#"{"a":[1]}"#, #"{"set":{"at":"/a/2","value":1}}"#, .doesNotFit),
        (#"{"a":[1]}"#, #"{"set":{"at":"/a/01","value":1}}"#, .doesNotFit),
        (#"{"a":[1]}"#, #"{"set":{"at":"/a/x","value":1}}"#, .doesNotFit),
        ("{}", #"{"remove":{"at":"/a"}}"#, .nothingThere),
        (#"{"a":[1]}"#, #"{"remove":{"at":"/a/-"}}"#, .nothingThere),
        (#"{"a":[1]}"#, #"{"remove":{"at":"/a/1"}}"#, .nothingThere),
        ("{}", #"{"remove":{"at":""}}"#, .doesNotFit),
        (#"{"a":"x"}"#, #"{"increment":{"at":"/a","by":1}}"#, .doesNotFit),
        (#"{"a":null}"#, #"{"increment":{"at":"/a","by":1}}"#, .doesNotFit),
        (#"{"a":18446744073709551615}"#, #"{"increment":{"at":"/a","by":1}}"#, .overflow),
        (#"{"a":-9223372036854775808}"#, #"{"increment":{"at":"/a","by":-1}}"#, .overflow),
        (#"{"a":9007199254740993}"#, #"{"increment":{"at":"/a","by":0.5}}"#, .overflow),
        (#"{"a":1.7e308}"#, #"{"increment":{"at":"/a","by":1.7e308}}"#, .overflow),
        (#"{"a":{}}"#, #"{"append":{"at":"/a","value":1}}"#, .doesNotFit),
        (#"{"a":null}"#, #"{"append":{"at":"/a","value":1}}"#, .doesNotFit),
    ])
    func `an action that does not fit the document is refused`(
        before: String, action: String, code: DocumentRefusal.Code
    ) throws {
        let error = #expect(throws: DocumentRefusal.self) { try apply(action, to: before) }
        #expect(error?.code == code)
        #expect(error?.message.isEmpty == false)
    }

    @Test(arguments: [
        (#"{"set":{"at":"a","value":1}}"#, CodingFailure.Code.invalidValue),
        (#"{"set":{"at":"/a"}}"#, .missingField), (#"{"set":{"value":1}}"#, .missingField),
        (#"{"increment":{"at":"/a","by":"1"}}"#, .wrongType),
        (#"{"remove":{"at":"/a","value":1}}"#, .unknownField),
        (#"{"set":{"at":"/a","value":{"k":1,"k":2}}}"#, .duplicateKey),
        ("remove", .missingField), ("delete", .unknownAction),
    ])
    func `a malformed action is explained`(text: String, code: CodingFailure.Code) {
        let error = #expect(throws: CodingFailure.self) { try coder.decode(commandLine: text) }
        #expect(error?.code == code)
    }

    @Test func `a document never gets deeper than a parser goes`() throws {
        let bound = CodingLimits.depthMax
        let path = String(repeating: "/a", count: bound)
        let text = try apply("{\"set\":{\"at\":\"\(path)\",\"value\":1}}", to: "{}")
        #expect(try JSONValue(json: text).depth == bound)
        for action in [
            #"{"set":{"at":"\#(path)","value":[]}}"#, #"{"merge":{"at":"\#(path)","value":{}}}"#,
            #"{"append":{"at":"\#(path)","value":1}}"#,
            #"{"increment":{"at":"\#(path)/a","by":1}}"#,
        ] {
            let error = #expect(throws: DocumentRefusal.self) { try apply(action, to: "{}") }
            #expect(error?.code == .tooDeep)
        }
    }

    @Test func `keys keep their bytes`() throws {
        var text = try apply("{\"set\":{\"at\":\"/\u{E9}\",\"value\":1}}", to: "{}")
        text = try apply("{\"set\":{\"at\":\"/e\u{301}\",\"value\":2}}", to: text)
        #expect(Array(text.utf8) == Array("{\"e\u{301}\":2,\"\u{E9}\":1}".utf8))
    }

    @Test func `a store holds a document`() async throws {
        let store = ModelStore<Document>()
        try await store.dispatch(.increment(at: "/n", by: 2)).receipt()
        #expect(store.root == ["n": 2])
        do {
            try await store.dispatch(.remove(at: "/m")).receipt()
            Issue.record("the action was not refused")
        } catch {
            #expect(error.code == .refused)
            #expect((error.reason as? DocumentRefusal)?.code == .nothingThere)
        }
    }
}
