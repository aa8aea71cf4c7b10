import Conflux
import ConfluxBuiltins
import Testing

/// A document as a plain tree that every change copies. It is slow, but simple enough to be right.
private indirect enum Tree: Equatable {
    case scalar(JSONValue)
    case list([Tree])
    /// The members, in any order.
    case table([(key: String, value: Tree)])

    struct Refused: Error {}

    static func == (left: Tree, right: Tree) -> Bool { left.json == right.json }

    init(_ value: JSONValue) {
        if let array = value.array {
            self = .list(array.map(Tree.init))
        } else if let object = value.object {
            self = .table(object.map { ($0.key, Tree($0.value)) })
        } else {
            self = .scalar(value)
        }
    }

    var json: JSONValue {
        switch self {
        case .scalar(let value): return value
        case .list(let elements): return .array(elements.map(\.json))
        case .table(let members):
            var object = JSONObject()
            for member in members { object[member.key] = member.value.json }
            return .object(object)
        }
    }

    /// The tree, with the value at a path replaced. A nil value means that there is none.
    static func changed(
        _ tree: Tree?, _ path: [String], _ change: (Tree?) throws -> Tree?
    ) throws -> Tree? {
        guard let token = path.first else { return try change(tree) }
        let rest = Array(path.dropFirst())
        switch tree ?? .table([]) {
        case .scalar: throw Refused()
        case .list(var elements):
            guard let position = token == "-" ? elements.count : Int(token),
                String(position) == token || token == "-", (0...elements.count).contains(position)
            else { throw Refused() }
            let old = position < elements.count ? elements[position] : nil
            let new = try changed(old, rest, change)
            elements.replaceSubrange(
                position..<position + (old == nil ? 0 : 1), with: new.map { [$0] } ?? [])
            return .list(elements)
        case .table(var members):
            let place = members.firstIndex { Array($0.key.utf8) == Array(token.utf8) }
            let new = try changed(place.map { members[$0].value }, rest, change)
            if let place { members.remove(at: place) }
            if let new { members.append((token, new)) }
            return .table(members)
        }
    }

    static func merged(_ target: Tree?, _ patch: JSONValue) -> Tree {
        guard let changes = patch.object else { return Tree(patch) }
        var members: [(key: String, value: Tree)] = []
        if case .table(let present) = target { members = present }
        for change in changes {
            let place = members.firstIndex { Array($0.key.utf8) == Array(change.key.utf8) }
            let old = place.map { members.remove(at: $0).value }
            if change.value != .null { members.append((change.key, merged(old, change.value))) }
        }
        return .table(members)
    }

    func applying(_ action: Document.Action) throws -> Tree {
        let result: Tree?
        switch action {
        case .set(let at, let value):
            result = try Self.changed(self, at.tokens) { _ in Tree(value) }
        case .merge(let at, let patch):
            result = try Self.changed(self, at.tokens) { Self.merged($0, patch) }
        case .remove(let at):
            result = try Self.changed(self, at.tokens) {
                if $0 == nil { throw Refused() } else { nil }
            }
        case .increment(let at, let amount):
            result = try Self.changed(self, at.tokens) { old in
                guard case .scalar(let value) = old ?? .scalar(0), let number = JSONNumber(value),
                    let sum = number.adding(amount)
                else { throw Refused() }
                return .scalar(sum.value)
            }
        case .append(let at, let value):
            result = try Self.changed(self, at.tokens) { old in
                guard case .list(let elements) = old ?? .list([]) else { throw Refused() }
                return .list(elements + [Tree(value)])
            }
        }
        guard let result else { throw Refused() }
        return result
    }
}

struct DocumentModelTests {
    private struct Actions {
        var random: SplitMix64

        mutating func pick<Value>(_ values: [Value]) -> Value {
            values[Int.random(in: 0..<values.count, using: &random)]
        }

        mutating func pointer() -> JSONPointer {
            let tokens = ["a", "b", "\u{E9}", "e\u{301}", "0", "1", "2", "-", "", "01"]
            return JSONPointer(tokens: (0..<pick([0, 1, 1, 2, 2, 3])).map { _ in pick(tokens) })
        }

        mutating func value() -> JSONValue {
            pick([
                1, 0.5, "x", nil, [], [1, [2]], [:], ["a": 1], ["a": nil, "b": ["0": nil]],
                ["b": [["a": 1]]], ["\u{E9}": 1, "e\u{301}": 2], .integer(JSONInteger(UInt64.max)),
            ])
        }

        mutating func next() -> Document.Action {
            switch Int.random(in: 0..<8, using: &random) {
            case 0, 1: .set(at: pointer(), value: value())
            case 2: .merge(at: pointer(), value: value())
            case 3, 4: .remove(at: pointer())
            case 5:
                .increment(
                    at: pointer(), by: pick([1, -1, 0.5, .integer(JSONInteger(UInt64.max))]))
            default: .append(at: pointer(), value: value())
            }
        }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `a document behaves like a plain tree`(seed: UInt64) throws {
        var actions = Actions(random: SplitMix64(seed: seed))
        var document = Document()
        var tree = Tree([:])
        var applied = 0
        for step in 0..<500 {
            let action = actions.next()
            let expected = try? tree.applying(action)
            let refusal = refusal(of: action, by: document)
            let place = "seed \(seed), step \(step): \(action) on \(document.root)"
            #expect((expected == nil) == (refusal != nil), "\(place)")
            if refusal == nil {
                document.apply(action, ActionContext())
                applied += 1
            }
            tree = expected ?? tree
            try #require(document.root == tree.json, "\(place)")
        }
        #expect(applied > 50)
    }

    private func refusal(of action: Document.Action, by document: Document) -> (any Error)? {
        do {
            try document.check(action, ActionContext())
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [
        Document.Action.set(at: "/a/0/list/7", value: "x"), .increment(at: "/a/0/list/7", by: 1),
        .merge(at: "/a/0/list/7", value: ["x": 1]), .append(at: "/a/0/list/8", value: 1),
        .remove(at: "/a/0/list/9/x"),
    ])
    func `a large document is changed in place`(action: Document.Action) throws {
        var document = Document()
        let list = (0..<10_000).map { JSONValue.integer(JSONInteger($0)) }
        document.apply(.set(at: "/a", value: [["list": .array(list)]]), ActionContext())
        document.apply(.set(at: "/a/0/list/8", value: [1, 2, 3]), ActionContext())
        document.apply(.set(at: "/a/0/list/9", value: ["x": 1]), ActionContext())
        // The address of the list in memory. A change that copied the list would change the address, since the
        // copy is made while the original still exists.
        func address() -> UInt {
            document.root["/a/0/list"]?.array?.withUnsafeBufferPointer {
                UInt(bitPattern: $0.baseAddress)
            } ?? 0
        }
        let before = address()
        try document.check(action, ActionContext())
        document.apply(action, ActionContext())
        #expect(before != 0)
        #expect(address() == before)
    }
}
