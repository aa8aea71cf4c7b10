import Testing

/// The rules about names in documents: a small tree breaks each of them, and another one keeps it.
struct DocumentRuleTests {
    private func broken(_ rule: Rule, _ texts: [String: String]) -> [String] {
        rule.check(Tree(texts)).map { $0.path + ($0.line.map { ":\($0)" } ?? "") }
    }

    @Test func `a missing test that a document names is found`() {
        let texts = [
            "Tests/A/B.swift": "struct BTests {\n    @Test func `a thing holds`() {}\n}",
            "docs/a.md": """
            [`a thing holds`](../Tests/A/B.swift), [`BTests`](../Tests/A/B.swift)
            [`a thing`](../Tests/A/B.swift) and [`a thing holds`](../Tests/A/C.swift)
            [`no test`](../Sources/A/B.swift) [a thing](../Tests/A/B.swift)
            - [`a thing holds not`](../Tests/A/B.swift)
            """,
        ]
        #expect(broken(Rule.namedTests, texts) == ["docs/a.md:2", "docs/a.md:2", "docs/a.md:4"])
    }

    @Test func `a rule without one place and a rule without an entry are found`() {
        let texts = [
            "Sources/A/B.swift": "// rule 1, and rules 2 and 9\nfunc held() {}",
            "docs/rules.md": """
            | 1 | One holds. | harm | `A/B.swift` (`held`) |
            | 2 | Two hold. They both do. | harm | `A/B.swift` |
            | 3 | Three hold. | harm | `A/C.swift` |
            | 4 | Four hold. | harm | `A/B.swift`, `A/C.swift` |
            | 5 | Five hold. | harm | `A/B.swift` (`hel`) |
            | 6 | Six hold. | `A/B.swift` |
            """,
        ]
        #expect(broken(Rule.onePlace, texts) == (2...6).map { "docs/rules.md:\($0)" })
        #expect(broken(Rule.knownRules, texts) == ["Sources/A/B.swift:1"])
    }

    @Test func `a product without an article, or without a sample in it, is found`() {
        let texts = [
            "Package.swift":
                #".library(name: "A", …), .library(name: "B", …), .library(name: "C", …)"#,
            "Sources/A/A.docc/A.md": "# A\n```swift\na()\n```\n",
            "Sources/B/B.docc/B.md": "# B\n",
        ]
        #expect(
            broken(Rule.articlesOfProducts, texts) == [
                "Sources/B/B.docc/B.md", "Sources/C/C.docc/C.md",
            ])
        let article = ["Sources/A/A.docc/A.md": "\n```swift\na()\n```\n"]
        #expect(broken(Rule.runSamples, article) == ["Sources/A/A.docc/A.md:2"])
    }

    @Test func `a sample that no test compiles is found`() {
        let texts = [
            "Tests/ComingFromTests/A.swift": "func a() {\n    let b = 1\n\n    c(b)\n}\nlet d = 2",
            "Tests/ReadmeTests/A.swift": "let e = 3",
            "README.md": "```swift\nlet e = 3\n```\n```swift\nlet d = 2\n```",
            "docs/coming-from.md": """
            ```swift
            let b = 1
            c(b)
            ```
            ```swift
            let b = 2
            ```
            ```console
            $ none
            ```
            ```swift
            let b = 1
            c(b)

            let d = 2
            ```
            ```swift
            let d = 2

            c(b)
            ```
            ```swift
            ```
            """,
        ]
        #expect(
            broken(Rule.runSamples, texts) == [
                "README.md:4", "docs/coming-from.md:5", "docs/coming-from.md:17",
                "docs/coming-from.md:22",
            ])
    }

    @Test func `a page behind no door, or behind two, is found`() {
        let texts = [
            "docs/README.md": """
            # Documents
            ## Users
            | [a.md](a.md) | one |
            | [from/b.md](from/b.md) | two |
            ## Others
            | [a.md](a.md) | one again |
            """,
            "docs/a.md": "", "docs/from/b.md": "", "docs/c.md": "", "docs/decisions/1.md": "",
        ]
        #expect(broken(Rule.doors, texts) == ["docs/README.md", "docs/README.md:6"])
    }

    @Test func `a first page that is too long is found`() {
        let words = Array(repeating: "word |", count: 900).joined(separator: " ")
        #expect(broken(Rule.shortFirstPage, ["README.md": words]).isEmpty)
        #expect(broken(Rule.shortFirstPage, ["README.md": words + " more"]) == ["README.md"])
    }

    private let settings = """
        public struct NodeSettings {
            public var name: String?
            public var bytesMax: Int = (1 << 20) + (1 << 16)
            public var pauseMax: Duration? = .seconds(2 * 30)
            public var lineMax: Int { bytesMax * 2 }
            private static let countMax = 10_000
        }
        """

    private func table(_ rows: String...) -> String {
        "| setting | default | at the bound |\n|---|---|---|\n"
            + rows.map { "| \($0) | it waits |" }.joined(separator: "\n")
    }

    @Test func `a bound that differs from its document is found`() {
        func lines(_ rows: String...) -> [String] {
            broken(
                Rule.statedBounds,
                [
                    "Sources/A/B.swift": settings,
                    "docs/bounds.md": rows.reduce(table()) { "\($0)| \($1) | it waits |\n" },
                ])
        }
        #expect(
            lines(
                "`NodeSettings.bytesMax` | 1 MiB + 64 KiB", "`NodeSettings.pauseMax` | 60 s",
                "`NodeSettings.countMax` | 10,000", "`NodeSettings.lineMax` | twice as many"
            ).isEmpty)
        #expect(
            lines(
                "`NodeSettings.bytesMax` | 1 MiB", "`NodeSettings.pauseMax` | 60",
                "`NodeSettings.countMax` | many", "`NodeSettings.otherMax` | 1",
                "`Other.bytesMax` | 1 MiB + 64 KiB", "`NodeSettings.lineMax` | 2"
            ) == (3...8).map { "docs/bounds.md:\($0)" })
    }

    @Test func `a bound of the settings that is not listed is found`() {
        let row = "`NodeSettings.bytesMax` | 1 MiB + 64 KiB"
        #expect(
            broken(
                Rule.listedBounds, ["Sources/A/B.swift": settings, "docs/bounds.md": table(row)])
                == ["Sources/A/B.swift:4", "Sources/A/B.swift:5"])
        #expect(
            broken(
                Rule.listedBounds,
                [
                    "Sources/A/B.swift": settings,
                    "docs/bounds.md": table(
                        row, "`NodeSettings.pauseMax` | 60 s", "`NodeSettings.lineMax` | some"),
                ]
            ).isEmpty)
    }

    @Test(arguments: [
        ("64 << 20", "64 MiB"), ("1_024", "1,024"), (".milliseconds(2_000)", "2 s"),
        (".milliseconds(10)", "10 ms"), ("Duration.microseconds(400)", "400 µs"),
        ("Duration.seconds(60)", "60 s"), ("1 + 2 * 3", "7"), ("((2 + 1) * 2) << 1", "12"),
    ])
    func `an amount is the same in the code and in a document`(source: String, stated: String) {
        #expect(Amount(source: source) != nil)
        #expect(Amount(source: source) == Amount(stated: stated))
    }

    @Test(arguments: ["", "a", "1 +", "(1", "x << 2", "1.5"])
    func `text without an amount is not an amount`(text: String) {
        #expect(Amount(source: text) == nil && Amount(stated: text) == nil)
    }
}
