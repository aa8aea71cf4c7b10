@testable import ConfluxTesting
import Conflux
import ConfluxVocabulary
import Foundation
import Testing

/// Bags of words, each with a typical mistake.
private protocol Bag: Model where Action == BagAction {
    var words: [String] { get set }
}

private enum BagAction: Codable, Sendable, Equatable {
    case put(String)
    case turn
}

private struct GoodBag: Bag {
    static let name = "bag"
    var words: [String] = []
    var stamps: [Int64] = []

    func check(_ action: BagAction, _ context: ActionContext) throws {
        if action == .turn, words.isEmpty { throw CocoaError(.featureUnsupported) }
    }

    mutating func apply(_ action: BagAction, _ context: ActionContext) {
        var random = context.random
        switch action {
        case .put(let word): words.append("\(word)\(Int.random(in: 0...99, using: &random))")
        case .turn: words.shuffle(using: &random)
        }
        stamps.append(context.timestamp.rawValue)
    }
}

private struct SetBag: Bag {
    static let name = "set-bag"
    var words: [String] = []

    mutating func apply(_ action: BagAction, _ context: ActionContext) {
        switch action {
        case .put(let word): words.append(word)
        case .turn: words = Array(Set(words))
        }
    }
}

private struct ClockBag: Bag {
    static let name = "clock-bag"
    var words: [String] = []
    var info = Info()
    struct Info: Codable, Sendable { var last = 0.0 }

    mutating func apply(_ action: BagAction, _ context: ActionContext) {
        if action == .turn { info.last = Date().timeIntervalSince1970 }
    }
}

private struct RandomCheckBag: Bag {
    static let name = "check-bag"
    var words: [String] = []

    func check(_ action: BagAction, _ context: ActionContext) throws {
        if Int.random(in: 0...999_999) % 2 == 0 { throw CocoaError(.featureUnsupported) }
    }

    mutating func apply(_ action: BagAction, _ context: ActionContext) {}
}

private struct ForgetfulBag: Bag {
    static let name = "forgetful-bag"
    var words: [String] = []
    private var count = 0

    private enum CodingKeys: CodingKey { case words }

    mutating func apply(_ action: BagAction, _ context: ActionContext) {
        count += 1
        words = [String(count)]
    }
}

private struct LocaleBag: Bag {
    static let name = "locale-bag"
    var words: [String] = []

    mutating func apply(_ action: BagAction, _ context: ActionContext) {
        words = [TimeZone.current.identifier]
    }
}

private struct TrapBag: Bag {
    static let name = "trap-bag"
    var words: [String] = []

    mutating func apply(_ action: BagAction, _ context: ActionContext) {
        fatalError("the bag is torn")
    }
}

private struct SecondBag: Bag {
    static let name = "second-bag"
    var words: [String] = []

    mutating func apply(_ action: BagAction, _ context: ActionContext) {
        words = [String(Int(Date().timeIntervalSince1970))]
    }
}

private struct LargeBag: Bag {
    static let name = "large-bag"
    var words: [String] = []
    var last = 0.0

    mutating func apply(_ action: BagAction, _ context: ActionContext) {
        switch action {
        case .put(let word): words.append(word)
        case .turn: last = Date().timeIntervalSince1970
        }
    }
}

/// Has two values, only one of which is encoded.
private struct CarelessAction: Codable, Sendable {
    var a: Int
    var b: Int

    init(a: Int, b: Int) {
        (self.a, self.b) = (a, b)
    }

    private enum CodingKeys: CodingKey { case a, b }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        a = try container.decode(Int.self, forKey: .a)
        b = try container.decode(Int.self, forKey: .b) + 1
    }
}

private struct CarelessBag: Model {
    static let name = "careless-bag"
    var sum = 0

    mutating func apply(_ action: CarelessAction, _ context: ActionContext) {
        sum += action.a
    }
}

/// An action with collections that have no order.
private struct LabelAction: Codable, Sendable {
    struct Key: Codable, Hashable { var name: String }

    var labels: Set<String>
    var weights: [Key: Int]
}

private struct LabelBag: Model {
    static let name = "label-bag"
    var words: [String] = []

    mutating func apply(_ action: LabelAction, _ context: ActionContext) {
        words += action.labels.sorted()
        words += action.weights.map { "\($0.key.name) \($0.value)" }.sorted()
    }
}

private enum BriefAction: Codable, Sendable { case put(String) }

/// Takes only actions of one origin.
private struct BriefBag: Model {
    static let name = "brief-bag"
    static let coding = PayloadCoding.compact
    var words: [String] = []

    func check(_ action: BriefAction, _ context: ActionContext) throws {
        let origin = Origin(incarnation: Incarnation(6), counter: 1)
        if context.origin != origin { throw CocoaError(.featureUnsupported) }
    }

    mutating func apply(_ action: BriefAction, _ context: ActionContext) {
        switch action {
        case .put(let word):
            words = word == "clock" ? ["\(Date())\(UInt.random(in: 0...99))"] : [word]
        }
    }
}

/// An action whose JSON looks like one in the compact coding.
private struct PackedAction: Codable, Sendable { var compact: String }

private struct PackedBag: Model {
    static let name = "packed-bag"
    var words: [String] = []

    mutating func apply(_ action: PackedAction, _ context: ActionContext) {
        words.append(action.compact)
    }
}

// One after the other, since each check runs five processes beside other tests.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct DeterminismTests {
    @Test func `a deterministic state passes, with given and generated actions`() async {
        let checker = DeterminismChecker(GoodBag.self)
        await checker.check([.turn, .put("a"), .turn, .put("b")])
        await checker.check(count: 300) { random in
            Bool.random(using: &random) ? .turn : .put(String(random.next() % 10))
        }
        await checker.check([.turn, .put("a")], from: GoodBag(words: ["c"], stamps: [1]))
    }

    @Test func `an order that comes from a set is found`() async {
        let checker = DeterminismChecker(SetBag.self)
        let words = (0..<20).map { BagAction.put(String($0)) }
        let line = #line + 1
        let found = await failures { await checker.check(words + [.turn]) }
        #expect(found.map(\.line) == [line])
        let message = found.first?.message ?? ""
        #expect(message.hasPrefix("set-bag differs at /words/"))
        #expect(
            message.contains(" after action 21 of 21.\n\n    action: .turn\n    in process 1: \""))
        #expect(message.contains("\n    in process "))
        #expect(message.contains("sort what has no order"))
    }

    @Test func `a state that reads the clock is found, with the nested place`() async {
        let found = await failures {
            await DeterminismChecker(ClockBag.self).check(count: 10, seed: 5) { _ in .turn }
        }
        let message = found.first?.message ?? ""
        // Two processes may read the same time, though seldom.
        #expect(message.hasPrefix("clock-bag differs at /info/last after action "))
        #expect(message.hasSuffix("To repeat it: `check(count: 10, seed: 5)`."))
    }

    @Test func `a check that refuses only in one process is found`() async {
        let found = await failures {
            await DeterminismChecker(RandomCheckBag.self).check(count: 50) { _ in .turn }
        }
        let message = found.first?.message ?? ""
        #expect(message.hasPrefix("check-bag differs after action "))
        #expect(message.contains("refused") && message.contains("committed"))
    }

    @Test func `state that is missing in the snapshot is found`() async {
        let found = await failures {
            await DeterminismChecker(ForgetfulBag.self).check([.turn, .turn])
        }
        let message = found.first?.message ?? ""
        #expect(message.hasPrefix("forgetful-bag differs at /words/0 after action 2 of 2."))
        #expect(message.contains("    in process 1: \"2\"\n    when restored: \"1\"\n"))
    }

    @Test func `a dependence on the environment of a process is found`() async {
        let found = await failures { await DeterminismChecker(LocaleBag.self).check([.turn]) }
        #expect(
            found.first?.message.hasPrefix("locale-bag differs at /words/0 after action 1") == true)
    }

    @Test func `a process that ends too early is reported`() async {
        let found = await failures {
            await DeterminismChecker(TrapBag.self).check(count: 3, seed: 8) { _ in .turn }
        }
        let message = found.first?.message ?? ""
        #expect(
            message.hasPrefix(
                "trap-bag could not be checked: process 1 was ended by signal 4 at action 1. It said:\n\n"
            ))
        #expect(message.contains("the bag is torn"))
        #expect(message.hasSuffix("To repeat it: `check(count: 3, seed: 8)`."))
    }

    @Test func `a clock of whole seconds is found`() async {
        let found = await failures { await DeterminismChecker(SecondBag.self).check([.turn]) }
        #expect(found.first?.message.hasPrefix("second-bag differs at /words/0") == true)
    }

    @Test func `a large state is compared now and then, and the differing place is still named`()
        async
    {
        let found = await failures {
            await DeterminismChecker(LargeBag.self).check(
                Array(repeating: .put(String(repeating: "a", count: 4_000)), count: 60) + [.turn]
                    + Array(repeating: .put(""), count: 300))
        }
        let message = found.first?.message ?? ""
        #expect(message.hasPrefix("large-bag differs at /last after one of the actions "))
    }

    @Test func `an action that changes in its coding is reported`() async {
        let found = await failures {
            await DeterminismChecker(CarelessBag.self).check([CarelessAction(a: 1, b: 2)])
        }
        #expect(
            found.map(\.message) == [
                """
                careless-bag could not be checked: action `CarelessAction(a: 1, b: 2)` comes back from its \
                coding as another one. Does its `init(from:)` read all that its `encode(to:)` writes?
                """
            ])
    }

    @Test func `an action with sets keeps its value in its coding`() async {
        let labels = Set((0..<20).map { String($0) })
        let weights = Dictionary(
            uniqueKeysWithValues: (0..<20).map { (LabelAction.Key(name: "key \($0)"), $0) })
        let actions = (0..<8).map { _ in LabelAction(labels: labels, weights: weights) }
        await DeterminismChecker(LabelBag.self).check(actions)
    }

    @Test func `a process that does not reach the check is reported`() async {
        if RepeatOrder.current != nil { exit(0) }
        let found = await failures { await DeterminismChecker(GoodBag.self).check([.put("a")]) }
        let message = found.first?.message ?? ""
        #expect(
            message.hasPrefix(
                "bag could not be checked: process 1 ended with exit code 0 before the first action. It said"
            ))
        #expect(
            message.hasSuffix(
                """
                It did not come to this check. Under `swift test` it would have run this test \
                alone: does the test reach this check in every process?
                """))
    }

    @Test func `a check whose actions are all refused compares nothing`() async {
        let found = await failures { await DeterminismChecker(GoodBag.self).check([.turn, .turn]) }
        #expect(
            found.map(\.message) == [
                """
                bag could not be checked: each of the 2 actions was refused, so nothing was compared. Give it \
                actions that the state lets pass, or a state to begin from: `from:`.
                """
            ])
    }

    @Test func `the actions of a log can be checked`() async {
        let log = """
            {"epoch":5,"kind":"claim","nonce":1,"sequence":1}
            {"action":{"put":{"_0":"a"}},"epoch":5,"kind":"action","origin":"6:1","sequence":7,"target":"bag/*","timestamp":12}
            {"action":{"other":{}},"epoch":5,"kind":"action","origin":"6:1","sequence":8,"target":"counter/*","timestamp":13}
            {"action":{"turn":{}}}
            {"action":{"turn":{}},"kind":"action","sequence":10,"target":"bag/*"}
            {"kind":"skipped","sequence":12,"skipped":10,"target":"bag/*"}
            {"action":{"put":{"_0":"b"}},"kind":"action","sequence":13,"target":"bag/shared"}
            {"action":{"no":{}},"kind":"action","sequence":14,"target":"bag/other"}

            """
        await DeterminismChecker(GoodBag.self).check(log: log)
        let set = (0..<20).map { "{\"action\":{\"put\":{\"_0\":\"\($0)\"}}}\n" }.joined()
        let found = await failures {
            await DeterminismChecker(SetBag.self).check(log: set + "{\"action\":{\"turn\":{}}}")
        }
        #expect(found.first?.message.contains("after action 21 of 21.") == true)
    }

    @Test func `the compact actions of a log are checked with their origins`() async throws {
        let log = try ["pear", "clock"].map { word in
            let bytes = try ActionCoder<BriefAction>().encode(.put(word), as: .compact)
            let text = Data(bytes).base64EncodedString()
            return """
                {"action":{"compact":"\(text)"},"kind":"action","origin":"6:1","target":"brief-bag"}
                """
        }
        let checker = DeterminismChecker(BriefBag.self)
        await checker.check(log: log[0])
        let found = await failures { await checker.check(log: log.joined(separator: "\n")) }
        let message = found.first?.message ?? ""
        #expect(message.hasPrefix("brief-bag differs at /words/0 after action 2 of 2."))
        #expect(message.contains("\n    action: .put(\"clock\")\n"))
    }

    @Test func `an action in JSON that looks like a compact one is read as JSON`() async {
        let log = "{\"action\":{\"compact\":\"AAAA\"}}\n{\"action\":{\"compact\":\"pear\"}}"
        await DeterminismChecker(PackedBag.self).check(log: log)
    }

    @Test(arguments: [
        (
            "{\"action\":{\"turn\":{}},\"origin\":\"6\"}",
            "line 1: its `origin` is \"6\"; expected a node's number and that of its action, as in \"6:1\""
        ),
        ("{\"action\":{\"compact\":\"AAAA\"}}", "line 1: "),
        ("{\"kind\":\"action\",\"target\":\"bag\"}", "line 1: it has no member `action`"),
        ("\n{\"action\":{\"fly\":{}}}", "line 2: "), ("nonsense", "line 1: "),
        (
            "{\"action\":{\"turn\":{}},\"sequence\":0}",
            "line 1: sequence number 0 does not follow 0"
        ),
        (
            "{\"action\":{\"turn\":{}},\"sequence\":4}\n{\"action\":{\"turn\":{}},\"sequence\":4}",
            "line 2: sequence number 4 does not follow 4"
        ),
    ])
    func `a log that can't be read is reported`(log: String, reason: String) async {
        let found = await failures { await DeterminismChecker(GoodBag.self).check(log: log) }
        #expect(found.first?.message.hasPrefix("bag could not be checked: \(reason)") == true)
    }

    @Test func `without actions there is nothing to check`() async {
        let found = await failures { await DeterminismChecker(GoodBag.self).check([]) }
        #expect(
            found.map(\.message) == [
                "bag could not be checked: there is no action to check it by. Give it at least one."
            ])
    }
}
