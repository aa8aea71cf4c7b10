import Foundation
import Testing

@testable import ConfluxCoding

@Suite struct `The shapes of actions` {
    private enum Colour: String, Codable, Sendable { case red, green }
    private struct Item: Codable, Sendable {
        var name: String
        var parts: [Item]
        var parent: [String: Item]?
    }
    private enum Sample: Codable, Sendable {
        case clear
        case add(amount: Int, note: String?)
        case move(Double, to: Colour)
        case put(item: Item, flags: [Bool], on: Bool, data: Data, any: JSONValue, at: Date)
        case guarded(Guarded)
    }
    /// Its decoding rejects values that are made up.
    private struct Guarded: Codable, Sendable {
        var text: String
        init(from decoder: any Decoder) throws {
            text = try decoder.singleValueContainer().decode(String.self)
            guard !text.isEmpty else { throw CodingFailure(.invalidValue, "it is empty") }
        }
    }
    private enum Renamed: Codable, Sendable {
        case first(a: Int)
        enum CodingKeys: String, CodingKey { case first = "1st" }
        enum FirstCodingKeys: String, CodingKey { case a = "A" }
    }
    private enum Placed: Codable, Sendable {
        case reset
        case set(at: JSONPointer, count: Int, note: String?, value: JSONValue)
    }
    private enum Only: Codable, Sendable { case one }
    private enum Many: Codable, Sendable {
        indirect case nested(Many)
        case a, b, c, d, e, f, g, h
    }
    private struct Plain: Codable, Sendable { var amount: Int }
    private enum Raw: String, Codable, Sendable { case on, off }
    private struct Generic<Value: Codable & Sendable>: Sendable {
        enum Action: Codable, Sendable { case set(Value) }
    }

    private func derived<Action: Codable>(
        of type: Action.Type, bytesMax: Int = 4_096
    ) -> ActionCatalog? {
        ActionCatalog.derived(of: type, bytesMax: bytesMax)
    }

    private func text<Action: Codable>(of type: Action.Type) throws -> String {
        String(decoding: try #require(derived(of: type)).json, as: UTF8.self)
    }

    @Test func `the names and fields of an enum are derived from its coding`() throws {
        #expect(
            try text(of: Sample.self)
                == #"{"add":{"amount":"integer","note":"string?"},"clear":{},"guarded":null,"#
                + #""move":{"_0":"number","to":"string"},"#
                + #""put":{"any":"any","at":"number","data":"string","flags":"list","item":"object","on":"boolean"}}"#
        )
        #expect(try text(of: Renamed.self) == #"{"1st":{"A":"integer"}}"#)
        #expect(try text(of: Only.self) == #"{"one":{}}"#)
        #expect(try text(of: Generic<Int>.Action.self) == #"{"set":{"_0":"integer"}}"#)
        let many = try #require(derived(of: Many.self))
        #expect(many.actions.keys.sorted() == ["a", "b", "c", "d", "e", "f", "g", "h", "nested"])
    }

    @Test func `a JSON pointer is a kind of its own`() throws {
        let catalog = try #require(derived(of: Placed.self))
        #expect(
            try text(of: Placed.self)
                == #"{"reset":{},"set":{"at":"pointer","count":"integer","note":"string?","value":"any"}}"#
        )
        for (at, isValid) in [("", true), ("/a~1b/0", true), ("a", false), ("/~2", false)] {
            let action: JSONValue = [
                "set": ["at": .string(at), "count": 1, "value": .null]
            ]
            let failure = Result { () throws(CodingFailure) in
                try catalog.check(action) { _, _ in nil }
            }
            if case .success = failure {
                #expect(isValid, "\(at)")
            } else {
                #expect(!isValid, "\(at)")
            }
        }
        // Whoever does not know the kind checks nothing of it.
        let other = try ActionCatalog(json: Array(#"{"set":{"at":"place"}}"#.utf8)[...])
        #expect(other.actions["set"] == .known(["at": .init(kind: .any, isOptional: false)]))
    }

    @Test func `shapes have a JSON Schema`() throws {
        let schema = try #require(derived(of: Placed.self)).schema
        func member(_ value: JSONValue?, _ key: String) -> JSONValue? { value?.object?[key] }
        let choices = try #require(member(schema, "oneOf")?.array)
        #expect(choices.count == 2)
        #expect(member(choices[0], "required") == ["reset"])
        let set = member(member(choices[1], "properties"), "set")
        #expect(member(set, "required") == ["at", "count", "value"])
        #expect(member(set, "additionalProperties") == false)
        let fields = member(set, "properties")
        #expect(member(fields, "note") == ["type": ["string", "null"]])
        #expect(member(fields, "value") == [:])
        #expect(member(member(fields, "count"), "type") == "integer")
        #expect(member(member(fields, "at"), "pattern") != nil)
    }

    @Test func `no shapes are derived from a type that decodes itself in another way`() {
        #expect(derived(of: Plain.self) == nil)
        #expect(derived(of: Raw.self) == nil)
        #expect(derived(of: JSONValue.self) == nil)
        #expect(derived(of: Int.self) == nil)
        #expect(derived(of: [String: Int].self) == nil)
        #expect(derived(of: Sample.self, bytesMax: 100) == nil)
    }

    @Test func `a catalog survives JSON`() throws {
        let catalog = try #require(derived(of: Sample.self))
        #expect(try ActionCatalog(json: catalog.json[...]) == catalog)
        for text in ["", "[]", "{}", "7"] {
            #expect(throws: CodingFailure.self) {
                try ActionCatalog(json: Array(text.utf8)[...])
            }
        }
        // A kind that is added later is not checked.
        let later = try ActionCatalog(json: Array(#"{"a":{"b":"colour"}}"#.utf8)[...])
        try later.check(try JSONValue(json: #"{"a":{"b":[1]}}"#)) { _, _ in nil }
    }

    @Test func `an action passes exactly if its type decodes it`() throws {
        let catalog = try #require(derived(of: Sample.self))
        let coder = ActionCoder<Sample>()
        for (text, isGood) in [
            (#"{"clear":{}}"#, true), (#"{"cleer":{}}"#, false), (#"{"clear":{"x":1}}"#, false),
            (#"{"clear":[]}"#, false), ("{}", false), (#"{"clear":{},"add":{}}"#, false),
            ("5", false), (#"{"add":{"amount":5}}"#, true), (#"{"add":{"amount":5.0}}"#, true),
            (#"{"add":{"amount":null}}"#, false), (#"{"add":{"amount":"5"}}"#, false),
            (#"{"add":{"amount":5,"note":null}}"#, true),
            (#"{"add":{"amount":5,"note":"n"}}"#, true), (#"{"add":{"note":"n"}}"#, false),
            (#"{"move":{"_0":1,"to":"red"}}"#, true), (#"{"move":{"_0":1.5}}"#, false),
            (#"{"guarded":{"_0":"x"}}"#, true),
        ] {
            let value = try JSONValue(json: text)
            if isGood {
                try catalog.check(value) { _, _ in nil }
                _ = try coder.decode(commandLine: text)
            } else {
                #expect(throws: CodingFailure.self, "\(text)") {
                    try catalog.check(value) { _, _ in nil }
                }
                #expect(throws: CodingFailure.self, "\(text)") {
                    try coder.decode(commandLine: text)
                }
            }
        }
    }

    @Test func `a refusal says what was expected and what was probably meant`() throws {
        let catalog = try #require(derived(of: Renamed.self))
        let failure = #expect(throws: CodingFailure.self) {
            try catalog.check(try JSONValue(json: #"{"1st":{"B":1}}"#)) { word, candidates in
                #expect((word, candidates) == ("B", ["A"]))
                return "A"
            }
        }
        #expect(
            failure?.message == #"at /1st: there is no field "B". Did you mean "A"?"#)
        #expect(catalog.lines == [#"{"1st":{"A":integer}}"#])
    }
}
