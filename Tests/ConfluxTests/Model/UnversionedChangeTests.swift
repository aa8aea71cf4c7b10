import Conflux
import Testing

/// Changes of a form that need no new version: what one program writes, the other reads, and both encode the same.
struct UnversionedChangeTests {
    enum Before {
        struct Line: Codable { var count = 0 }
        struct Cart: Codable {
            var lines: [String: Line] = [:]
            var first = Line()
        }
        enum Action: Codable, Sendable { case add(name: String) }
    }

    enum After {
        struct Line: Codable {
            var count = 0
            var note: String?
        }
        struct Cart: Codable {
            var lines: [String: Line] = [:]
            var first = Line()
            var owner: String?
        }
        enum Action: Codable, Sendable { case add(name: String, note: String?), clear }
    }

    private let coder = CanonicalCoder()

    @Test func `an optional property that is nil changes no snapshot, at any depth`() throws {
        let old = Before.Cart(lines: ["a": .init(count: 1)], first: .init(count: 2))
        let bytes = try coder.encode(old)
        let new = try coder.decode(After.Cart.self, from: bytes)
        #expect(new.first.count == 2 && new.lines["a"]?.count == 1)
        #expect(try coder.encode(new) == bytes)
        #expect(try coder.encode(coder.decode(Before.Cart.self, from: bytes)) == bytes)
    }

    @Test func `an optional property that has a value is lost in the older program`() throws {
        let new = try coder.encode(After.Cart(owner: "ann"))
        let old = try coder.encode(coder.decode(Before.Cart.self, from: new))
        #expect(old != new)
    }

    @Test func `an optional value of an action that is nil changes no action`() throws {
        let (old, new) = (ActionCoder<Before.Action>(), ActionCoder<After.Action>())
        let bytes = try old.encode(.add(name: "fig"), as: .json)
        #expect(try new.encode(.add(name: "fig", note: nil), as: .json) == bytes)
        guard case .add("fig", nil) = try new.decode(bytes[...], as: .json) else {
            Issue.record("it is another action")
            return
        }
    }

    @Test(arguments: [After.Action.clear, .add(name: "fig", note: "ripe")])
    func `the older program refuses what is new as soon as it is dispatched`(
        action: After.Action
    ) throws {
        let bytes = try ActionCoder<After.Action>().encode(action, as: .json)
        #expect(throws: CodingFailure.self) {
            try ActionCoder<Before.Action>().decode(bytes[...], as: .json)
        }
    }
}
