import ConfluxNode
@testable import ConfluxProtocol
import ConfluxWorker
import Testing

@testable import ConfluxCLI

@Suite struct `Actions as they are typed` {
    private func payload(
        _ text: String, for target: String, payloadBytesMax: Int = 1_000
    ) throws -> String {
        let encoder = ActionEncoder(
            try #require(Target(target)), payloadBytesMax: payloadBytesMax)
        return String(decoding: try encoder.payload(Array(text.utf8)), as: UTF8.self)
    }

    private func failure(
        _ text: String, for target: String, payloadBytesMax: Int = 1_000
    ) throws -> CommandFailure {
        try #require(throws: CommandFailure.self) {
            try payload(text, for: target, payloadBytesMax: payloadBytesMax)
        }
    }

    @Test func `an action without fields may be written as its name`() throws {
        #expect(try payload("increment", for: "counter") == #"{"increment":{}}"#)
        #expect(try payload("reset", for: "custom/x") == #"{"reset":{}}"#)
    }

    @Test(arguments: ["document", "custom/x"])
    func `an action that is not UTF-8 is refused with the place`(target: String) throws {
        let encoder = ActionEncoder(try #require(Target(target)), payloadBytesMax: 1_000)
        let start = Array(#"{"set":{"at":"/a","value":"caf"#.utf8)
        for bytes in [[0xE9], [0xC0, 0xAF], [0xED, 0xA0, 0x80]] as [[UInt8]] {
            let failure = #expect(throws: CommandFailure.self) {
                try encoder.payload(start + bytes + Array(#""}}"#.utf8))
            }
            #expect(failure?.exitCode == .invalidInput)
            let place = "byte 0x\(String(bytes[0], radix: 16, uppercase: true)) (at byte 30)"
            #expect(failure?.message.contains(place) == true, "\(failure?.message ?? "")")
        }
    }

    @Test func `half of a surrogate pair is refused`() throws {
        let failure = try failure(
            #"{"set":{"at":"/a","value":"\ud800"}}"#, for: "document")
        #expect(failure.message.contains("surrogate"))
    }

    @Test func `a built-in action is checked, and the message says what was expected`() throws {
        let unknown = try failure("incremen", for: "counter/room")
        #expect(unknown.exitCode == .invalidInput)
        #expect(unknown.code == "invalidAction")
        #expect(unknown.message.contains("expected one of: add, decrement, increment"))
        #expect(unknown.message.contains(#"Did you mean "increment"?"#))
        #expect(unknown.message.hasSuffix("\n  decrement\n  increment"))
        #expect(try failure("{add:{amount:1}}", for: "counter").message.contains("single quotes"))
        #expect(try !failure(#"{"a":1"#, for: "counter").message.contains("single quotes"))
        // A field that is missing, as well as one that is misspelt.
        #expect(
            try failure("add", for: "counter").message.contains(#"the field "amount" is missing"#))
        #expect(try failure(#"{"add":{"amont":1}}"#, for: "counter").message.contains("amount"))
        #expect(throws: CommandFailure.self) {
            try payload(#"{"set":{"at":"a"}}"#, for: "document")
        }
    }

    @Test func `another state's action is passed on as it is, if it is JSON`() throws {
        #expect(try payload(#"{ "b" : 1,  "a":2 }"#, for: "custom") == #"{ "b" : 1,  "a":2 }"#)
        #expect(try failure("{", for: "custom").exitCode == .invalidInput)
        #expect(try failure(#"{"a":1,"a":2}"#, for: "custom").exitCode == .invalidInput)
        let encoder = ActionEncoder(try #require(Target("custom/*")), payloadBytesMax: 10)
        #expect(throws: CommandFailure.self) { try encoder.payload([0x22, 0xFF, 0x22]) }
    }

    private func checking(
        _ json: String, version: UInt32? = nil, isChecking: Bool = true
    ) async throws -> ActionEncoder {
        let store = StoreName(
            state: try #require(Name("custom")), instance: try #require(Name("a")))
        let status = SequencerStatus(
            log: .none, epoch: .none, last: .zero, floor: .zero, checkpoint: .zero, sessions: [],
            stores: [
                StoreStatus(
                    store: store, life: SequenceNumber(1), schemaVersion: 2, hosts: 1,
                    snapshot: SequenceNumber(1))
            ],
            shapes: [
                ActionShapes(schemaVersion: 1, json: Array(#"{"old":{}}"#.utf8)[...]),
                ActionShapes(schemaVersion: 2, json: Array(json.utf8)[...]),
            ])
        var encoder = ActionEncoder(try #require(Target("custom/*")), payloadBytesMax: 1_000)
        try await encoder.prepare(schemaVersion: version, isChecking: isChecking) { _ in status }
        return encoder
    }

    @Test func `another state's action is checked by the shapes of its store's version`()
        async throws
    {
        let shapes = #"{"add":{"amount":"integer","note":"string?"},"reset":{}}"#
        let encoder = try await checking(shapes)
        for text in ["reset", #"{"add":{"amount":1}}"#, #"{"add":{"amount":1,"note":null}}"#] {
            _ = try encoder.payload(Array(text.utf8))
        }
        let failure = try #require(throws: CommandFailure.self) {
            try encoder.payload(Array("rest".utf8))
        }
        #expect(failure.exitCode == .invalidInput)
        #expect(failure.code == "invalidAction")
        #expect(
            failure.message == """
                The action is not valid: expected one of: add, reset; found "rest". Did you mean \
                "reset"?
                The actions are:
                  {"add":{"amount":integer,"note":string?}}
                  reset
                """)
        let older = try await checking(shapes, version: 1)
        #expect(throws: CommandFailure.self) { try older.payload(Array("reset".utf8)) }
        _ = try older.payload(Array("old".utf8))
    }

    @Test func `nothing is refused if no shapes are known, or the check is disabled`() async throws
    {
        let typo = Array("rest".utf8)
        for encoder in [
            try await checking(#"{"reset":{}}"#, version: 7),
            try await checking(#"{"reset":{}}"#, isChecking: false),
            try await checking("[]"),
        ] {
            #expect(try encoder.payload(typo) == Array(#"{"rest":{}}"#.utf8))
        }
    }

    @Test func `an action above the limit is refused before it is sent`() throws {
        let long = String(repeating: "x", count: 100)
        let text = #"{"set":{"at":"/a","value":"\#(long)"}}"#
        #expect(
            try failure(text, for: "document", payloadBytesMax: 64).exitCode == .invalidInput)
        #expect(try payload(text, for: "document", payloadBytesMax: 1_000) == text)
    }
}
