import Conflux
import ConfluxBuiltins
import Foundation
import Testing

/// Compares the code with `docs/golden-codings.json`: the examples in the protocol's document of codings
/// and of the tool's own states.
struct GoldenCodingTests {
    private struct Golden: Decodable {
        struct Canonical: Decodable {
            let json: String
            /// nil if the text is refused.
            let canonical: String?
        }

        struct Compact: Decodable {
            let octets: String
            /// nil if the octets are refused.
            let json: String?
        }

        struct Change: Decodable {
            let before: String
            let action: String
            /// nil if the action is refused.
            let after: String?
        }

        let canonical: [Canonical]
        let compact: [Compact]
        let counter: [Change]
        let document: [Change]

        static func read() throws -> Golden {
            let url = URL(filePath: #filePath)
                .deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().appending(path: "docs/golden-codings.json")
            return try JSONDecoder().decode(Golden.self, from: Data(contentsOf: url))
        }
    }

    private func text(_ value: some Encodable) throws -> String {
        String(decoding: try CanonicalCoder().encode(value), as: UTF8.self)
    }

    private func octets(_ digits: String) -> [UInt8] {
        let digits = Array(digits)
        return stride(from: 0, to: digits.count, by: 2).compactMap {
            UInt8(String(digits[$0...$0 + 1]), radix: 16)
        }
    }

    @Test func `each JSON text has the canonical form that is written down`() throws {
        for example in try Golden.read().canonical {
            let found = try? text(JSONValue(json: example.json))
            #expect(found == example.canonical, "\(example.json)")
        }
    }

    @Test func `the compact octets match the specified JSON`() throws {
        let coder = ActionCoder<JSONValue>()
        for example in try Golden.read().compact {
            let value = try? coder.decode(octets(example.octets)[...], as: .compact)
            let found = try value.map { try text($0) }
            #expect(found == example.json, "\(example.octets)")
        }
    }

    @Test func `a counter behaves as specified`() throws {
        let coder = ActionCoder<CounterAction>()
        for example in try Golden.read().counter {
            let state = CounterState()
            state.snapshot = try CanonicalCoder().decode(
                CounterState.Snapshot.self, from: Array(example.before.utf8))
            let found: String?
            do {
                let action = try coder.decode(Array(example.action.utf8)[...], as: .json)
                let mutations = CounterState.mutations
                try mutations.check(action: action, state: state, context: ActionContext())
                mutations.commit(action: action, state: state)
                found = try text(state.snapshot)
            } catch {
                found = nil
            }
            #expect(found == example.after, "\(example.action) of \(example.before)")
        }
    }

    @Test func `a document behaves as specified`() throws {
        let coder = ActionCoder<Document.Action>()
        for example in try Golden.read().document {
            var document = try CanonicalCoder().decode(
                Document.self, from: Array(example.before.utf8))
            let found: String?
            do {
                let action = try coder.decode(Array(example.action.utf8)[...], as: .json)
                try document.check(action, ActionContext())
                document.apply(action, ActionContext())
                found = try text(document)
            } catch {
                found = nil
            }
            #expect(found == example.after, "\(example.action) of \(example.before)")
        }
    }
}
