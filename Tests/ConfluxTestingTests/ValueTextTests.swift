@testable import ConfluxTesting
import Conflux
import Foundation
import Testing

/// How values are written so that people can compare them.
struct ValueTextTests {
    private final class Node {
        var name: String
        var next: Node?
        init(_ name: String) { self.name = name }
    }

    private final class Leaf: Sendable {}

    private struct Everything {
        var text = "a \"word\"\n"
        var none: Int?
        var some: Int? = 5
        var list = [1, 2]
        var empty: [String] = []
        var set: Set<Int> = [3, 1, 2]
        var table = ["b": 2, "a": 1]
        var pair = (1, right: "two")
        var kind = Stock.Action.add("fig", 3)
        var date = Date(timeIntervalSince1970: 0)
        var json: JSONValue = ["k": [1, nil]]
    }

    @Test func `values of every kind are written out`() {
        #expect(
            ValueText.lines(of: Everything()).joined(separator: "\n") == """
                Everything(
                  text: "a \\"word\\"\\n",
                  none: nil,
                  some: 5,
                  list: [
                    1,
                    2,
                  ],
                  empty: [],
                  set: [
                    1,
                    2,
                    3,
                  ],
                  table: [
                    "a": 1,
                    "b": 2,
                  ],
                  pair: (1, right: "two"),
                  kind: .add("fig", 3),
                  date: 1970-01-01 00:00:00 +0000,
                  json: {
                    "k": [
                      1,
                      null,
                    ],
                  },
                )
                """)
    }

    private struct Point: Equatable { var x = 1, y = 2 }
    private enum Shape: Sendable {
        case dot(Point)
        case path([Point], named: String)
    }

    @Test(arguments: [
        (Point() as any Sendable, "Point(x: 1, y: 2)"),
        (Shape.dot(Point()), ".dot(Point(x: 1, y: 2))"),
        ([Point?.none, Point()], "[nil, Point(x: 1, y: 2)]"), ([String](), "[]"),
        (Shape.path([], named: "(, )"), ".path([], named: \"(, )\")"),
        (["a": [Point(x: 3)]], "[\"a\": [Point(x: 3, y: 2)]]"),
        (["k": [1, nil]] as JSONValue, "{\"k\": [1, null]}"),
    ])
    func `a value is written on one line`(value: any Sendable, line: String) {
        #expect(ValueText.line(of: value) == line)
    }

    @Test func `an action of any type is logged as it is, and a function is not`() {
        let earn = TypedAction<Wallet>(Earn(amount: 3))
        #expect(ValueText.line(of: earn) == "Earn(amount: 3)")
        #expect(ValueText.quotation(of: earn) == "`Earn(amount: 3)`")
        #expect(ValueText.quotation(of: StorageCommit<Int> { _ in }) == "an unnamed commit")
    }

    @Test func `a cycle ends`() {
        let node = Node("a")
        node.next = Node("b")
        node.next?.next = node
        defer { node.next = nil }
        #expect(
            ValueText.lines(of: node) == [
                "Node(", "  name: \"a\",", "  next: Node(", "    name: \"b\",",
                "    next: Node(…),", "  ),", ")",
            ])
    }

    @Test func `a long value is truncated, and the rest is counted`() {
        let text = Difference.text(expected: Array(0..<1_000), actual: Array(1_000..<2_000))
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == 203)
        #expect(lines[200] == "    … (1802 more lines)")
        #expect(ValueText.lines(of: Array(0..<100_000)).count <= ValueText.linesMax + 10)
    }

    @Test func `equal lines far from a difference are left out`() {
        var changed = Array(0..<100)
        changed[50] = 0
        #expect(
            Difference.text(expected: Array(0..<100), actual: changed) == """
                      … (48 lines alike)
                        47,
                        48,
                        49,
                    -   50,
                    +   0,
                        51,
                        52,
                        53,
                      … (47 lines alike)

                (- expected, + actual)
                """)
    }

    @Test func `a value whose description omits parts is written out part by part`() {
        let first = Date(timeIntervalSinceReferenceDate: 0)
        let text = Difference.text(expected: first, actual: first + 0.25)
        #expect(text.contains("+   timeIntervalSinceReferenceDate: 0.25,"))
    }

    @Test func `a large dictionary is sorted before it is truncated`() {
        let expected = Dictionary(uniqueKeysWithValues: (10_000..<22_000).map { ($0, 0) })
        var actual = expected
        actual[10_005] = 1
        let text = Difference.text(expected: expected, actual: actual)
        #expect(text.contains("    -   10005: 0,\n    +   10005: 1,"))
        #expect(text.split(separator: "\n").count < 15)
        actual = expected
        actual[21_999] = 1
        #expect(
            Difference.text(expected: expected, actual: actual)
                == "    The first 10000 lines of the two are alike; the rest is not shown.")
    }

    private struct Hidden: Equatable, CustomReflectable {
        var secret: Int
        var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
    }

    @Test func `unequal values with the same text are reported as such`() {
        #expect(
            Difference.text(expected: Hidden(secret: 1), actual: Hidden(secret: 2)) == """
                    Hidden()

                The two are written alike and are not equal: does `==` look at something that is \
                not a stored property?
                """)
    }
}
