import ConfluxNode
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

    @Test func `a built-in action is checked, and the message says what was expected`() throws {
        let unknown = try failure("incremen", for: "counter/room")
        #expect(unknown.exitCode == .invalidInput)
        #expect(unknown.code == "invalidAction")
        #expect(unknown.message.contains("expected one of: add, decrement, increment"))
        #expect(try failure(#"{"add":{"amont":1}}"#, for: "counter").message.contains("amount"))
        #expect(throws: CommandFailure.self) {
            try payload(#"{"set":{"at":"a"}}"#, for: "document")
        }
    }

    @Test func `another state's action is passed on as it is, if it is JSON`() throws {
        #expect(try payload(#"{ "b" : 1,  "a":2 }"#, for: "custom") == #"{ "b" : 1,  "a":2 }"#)
        #expect(try failure("{", for: "custom").exitCode == .invalidInput)
        #expect(try failure(#"{"a":1,"a":2}"#, for: "custom").exitCode == .invalidInput)
        let encoder = ActionEncoder(try #require(Target("custom")), payloadBytesMax: 10)
        #expect(throws: CommandFailure.self) { try encoder.payload([0x22, 0xFF, 0x22]) }
    }

    @Test func `an action above the limit is refused before it is sent`() throws {
        let long = String(repeating: "x", count: 100)
        let text = #"{"set":{"at":"/a","value":"\#(long)"}}"#
        #expect(
            try failure(text, for: "document", payloadBytesMax: 64).exitCode == .invalidInput)
        #expect(try payload(text, for: "document", payloadBytesMax: 1_000) == text)
    }
}
