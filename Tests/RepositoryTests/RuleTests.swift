import Foundation
import Testing

/// The rules: a small tree breaks each of them, and another one keeps it.
struct RuleTests {
    /// The places where a tree breaks a rule, as `path:line` or `path`.
    private func broken(_ rule: Rule, _ texts: [String: String], others: Set<String> = [])
        -> Set<String>
    {
        let violations = rule.check(Tree(texts, others: others))
        return Set(violations.map { $0.path + ($0.line.map { ":\($0)" } ?? "") })
    }

    @Test func `an import from above is found`() {
        let texts = [
            "Sources/ConfluxVocabulary/A.swift": "@testable import struct ConfluxNode.Node",
            "Sources/Conflux/B.swift": "import Foundation\nimport ConfluxVocabulary\n",
            "Sources/Conflux/C.swift": "\nimport Foundation; @preconcurrency import CZeroMQ",
            "Sources/ConfluxNode/D.swift": "@_exported public import Conflux\n// import CSQLite",
            "Sources/ConfluxNode/E.swift": "@_spi(Inner) import ConfluxBuiltins",
            "Sources/ConfluxLog/F.swift": "import class NIO.EventLoop",
        ]
        #expect(
            broken(Rule.layering, texts) == [
                "Sources/ConfluxVocabulary/A.swift:1", "Sources/Conflux/C.swift:2",
                "Sources/ConfluxNode/E.swift:1", "Sources/ConfluxLog/F.swift:1",
            ])
    }

    @Test func `a library below Conflux, an unsafe flag and a missing documentation are found`() {
        func manifest(_ below: String) -> String {
            """
            .library(name: "Conflux", …), .library(name: "ConfluxNode", …),
            .systemLibrary(name: "CSodium"),
            .target(name: "ConfluxThreads", dependencies: ["ConfluxCoding"\(below)]),
            .target(
                name: "Conflux", dependencies: [
                    "ConfluxThreads",
                ]),
            .target(name: "ConfluxNode", dependencies: ["Conflux", "CSodium"]),
            """
        }
        let index = "targets:\n  - Conflux\n  - ConfluxNode"
        let whole = ["Package.swift": manifest(""), ".spi.yml": index]
        for rule in Rule.manifest { #expect(broken(rule, whole).isEmpty) }
        #expect(
            broken(Rule.withoutLibraries, ["Package.swift": manifest(#", "CSodium""#)])
                == ["Package.swift"])
        #expect(
            broken(Rule.withoutUnsafeFlags, ["Package.swift": "[.unsafeFlags([])]"])
                == ["Package.swift"])
        #expect(
            broken(Rule.indexed, ["Package.swift": manifest(""), ".spi.yml": "- Conflux"])
                == [".spi.yml"])
    }

    @Test func `a target without a place is found`() {
        #expect(
            broken(Rule.layering, ["Sources/ConfluxNew/A.swift": ""])
                == ["Sources/ConfluxNew/A.swift"])
    }

    @Test(arguments: ["ConfluxVocabulary", "ConfluxProtocol", "ConfluxArguments"])
    func `a platform module in a pure layer is found`(target: String) {
        let texts = [
            "Sources/\(target)/A.swift": "import Foundation",
            "Sources/Conflux/B.swift": "import Dispatch",
        ]
        #expect(broken(Rule.pureLayers, texts) == ["Sources/\(target)/A.swift:1"])
    }

    @Test(arguments: [
        "Sources/ConfluxUtils/A.swift", "Sources/Conflux/Helpers/A.swift",
        "Tests/ConfluxTests/StringUtils.swift", "Sources/Conflux/Common.swift",
        "Sources/Conflux/String+Helpers.swift", "script/test-helpers", "examples/x/common.py",
    ])
    func `an empty name is found`(path: String) {
        #expect(broken(Rule.names, [:], others: [path]) == [path])
    }

    @Test(arguments: ["Sources/Conflux/CommonPrefix.swift", "docs/Helpers.md", "Package.swift"])
    func `a descriptive name is allowed`(path: String) {
        #expect(broken(Rule.names, [:], others: [path]).isEmpty)
    }

    @Test func `a type with a module's name is found`() {
        let texts = [
            "Sources/Conflux/A.swift": "public enum Conflux {}",
            "Sources/ConfluxNode/B.swift": "struct ConfluxNodeName {}\nlet class1 = Conflux.a",
        ]
        #expect(broken(Rule.moduleNames, texts) == ["Sources/Conflux/A.swift:1"])
    }

    @Test func `a type that hides a public one is found`() {
        let texts = [
            "Sources/Conflux/A.swift": "public protocol State {}\nstruct Inner {}",
            "Sources/Conflux/B.swift": "class B {\n    private struct State {}\n}",
            "Sources/ConfluxNode/C.swift":
                "enum Phase { case state }\n  enum Inner {}\n  enum State {}",
            "Sources/ConfluxLog/D.swift": "struct State {}",
        ]
        #expect(
            broken(Rule.shadows, texts)
                == ["Sources/Conflux/B.swift:2", "Sources/ConfluxNode/C.swift:3"])
    }

    @Test func `a long file is found`() {
        func text(_ lines: Int) -> String { String(repeating: "a\n", count: lines) }
        let texts = [
            "Sources/A/Fits.swift": text(400), "Sources/A/Long.swift": text(401),
            "Tests/A/Fits.swift": text(600), "Tests/A/Long.swift": text(601),
        ]
        #expect(broken(Rule.lengths, texts) == ["Sources/A/Long.swift", "Tests/A/Long.swift"])
    }

    @Test func `a full folder is found`() {
        let twelve = Set((1...12).map { "Sources/A/\($0).swift" })
        #expect(
            broken(Rule.folderSizes, [:], others: twelve.union(["Sources/A/B/1.swift"])).isEmpty)
        #expect(
            broken(Rule.folderSizes, [:], others: twelve.union(["Sources/A/13.h"])) == ["Sources/A"]
        )
    }

    @Test(arguments: [
        "Thread.sleep(forTimeInterval: 1)", "try await Task.sleep(for: .seconds(1))",
        "usleep(10)", "Glibc.sleep (1)", "let nap = Thread.sleep", "clock.sleep(until: x)",
    ])
    func `a sleep is found`(line: String) {
        #expect(broken(Rule.sleeps, ["Tests/A/B.swift": "\n\(line)"]) == ["Tests/A/B.swift:2"])
        #expect(broken(Rule.sleeps, ["Sources/A/B.swift": line]) == ["Sources/A/B.swift:1"])
    }

    @Test(arguments: [
        "asleep(1)", "sleepless()", "// sleep(1)", "let sleep = 1", #"print("sleep(1)")"#,
    ])
    func `a call that only sounds like a sleep is allowed`(line: String) {
        #expect(broken(Rule.sleeps, ["Sources/A/B.swift": line]).isEmpty)
    }

    @Test func `a wait for the wall clock is found, but for the latch's own`() {
        let line = "_ = place.wait(timeout: .now() + 1)"
        let paths = ["Sources/A/B.swift", "Sources/ConfluxThreads/Latch.swift", "Tests/A/B.swift"]
        let texts = Dictionary(uniqueKeysWithValues: paths.map { ($0, line) })
        #expect(broken(Rule.wallClockWaits, texts) == ["Sources/A/B.swift:1"])
    }

    @Test func `a forced try is found`() {
        let texts = ["Sources/A/B.swift": "// try! it\nlet a = try! b()\nlet c = \"try!\""]
        #expect(broken(Rule.forcedTries, texts) == ["Sources/A/B.swift:2"])
    }

    @Test(arguments: [
        "do { a() } catch {}", "} catch { }", "} catch let error as B {\n    // why not\n}",
        "} catch\n{\n\n}", "} catch is B { b() } catch {}",
    ])
    func `an empty catch is found`(text: String) {
        #expect(broken(Rule.emptyCatches, ["Sources/A/B.swift": text]) == ["Sources/A/B.swift:1"])
    }

    @Test(arguments: [
        "} catch { throw a }", "} catch is B {\n    b()\n}", "let catcher = {}", "// catch {}",
    ])
    func `a catch with a body is allowed`(text: String) {
        #expect(broken(Rule.emptyCatches, ["Sources/A/B.swift": text]).isEmpty)
    }

    @Test(arguments: [
        "let a = String(decoding: b, as: UTF8.self)", "    decoding: b, as: UTF8.self)",
        "String(cString: strerror(errno))", "CommandLine.arguments.first",
        "let a = ProcessInfo.processInfo.environment", "try String(contentsOfFile: a)",
        "while let a = readLine() {", "String(data: a, encoding: .utf8)",
    ])
    func `a conversion that replaces bytes is found`(line: String) {
        let paths = [
            "Sources/A/B.swift", "Sources/ConfluxVocabulary/Text/C.swift", "Tests/A/B.swift",
        ]
        let texts = Dictionary(uniqueKeysWithValues: paths.map { ($0, line) })
        #expect(broken(Rule.repairs, texts) == ["Sources/A/B.swift:1"])
    }

    @Test(arguments: [
        "String(utf8: a)", "String(validating: a, as: UTF8.self)", "String(validatingCString: a)",
        "// String(decoding: a, as: UTF8.self)", "var decoding: Mark { a }", "shownCString: a",
        "environment.arguments.first",
    ])
    func `a conversion that keeps bytes or refuses them is allowed`(line: String) {
        #expect(broken(Rule.repairs, ["Sources/A/B.swift": line]).isEmpty)
    }

    @Test(arguments: [
        "let words = strerror(errno)", "perror(path)", "\\(error.localizedDescription)",
        "if let error = error as? POSIXError {",
    ])
    func `an error of the system that gets its words elsewhere is found`(line: String) {
        let code = line.hasPrefix("\\") ? "print(\"\(line)\")" : line
        let paths = ["Sources/A/B.swift", "Sources/ConfluxSystem/C.swift", "Tests/A/B.swift"]
        let texts = Dictionary(uniqueKeysWithValues: paths.map { ($0, code) })
        #expect(broken(Rule.systemWords, texts) == ["Sources/A/B.swift:1"])
    }

    @Test(arguments: ["gai_strerror(number)", "// strerror", "curl_easy_strerror(code)"])
    func `words of another library are allowed`(line: String) {
        #expect(broken(Rule.systemWords, ["Sources/A/B.swift": line]).isEmpty)
    }

    @Test func `an unchecked promise without a reason is found`() {
        let texts = [
            "Sources/A/Bare.swift": "final class A: @unchecked Sendable {}",
            "Sources/A/Other.swift":
                "var lock = Lock()  // the lock\nnonisolated(unsafe) var a = 1",
            "Sources/A/Vague.swift": "// This is fine.\nnonisolated(unsafe) var a = 1",
            "Sources/A/Elsewhere.swift":
                "// Under the lock.\nvar b = 1 }\n\nnonisolated(unsafe) var a = 1",
        ]
        #expect(
            broken(Rule.uncheckedPromises, texts) == [
                "Sources/A/Bare.swift:1", "Sources/A/Other.swift:2", "Sources/A/Vague.swift:2",
                "Sources/A/Elsewhere.swift:4",
            ])
    }

    @Test(arguments: [
        "final class A: @unchecked Sendable {}  // all state is under `lock`",
        "// The mutex guards it.\nfinal class A: @unchecked Sendable {}",
        "/// Immutable after init.\n@usableFromInline\nfinal class A<B>: C,\n    @unchecked Sendable\n{}",
        "// A part of the model, which is Sendable.\nnonisolated(unsafe) let value = body(model)",
        "// Only the I/O thread\n// touches it.\nnonisolated(unsafe) var a = 1",
    ])
    func `an unchecked promise with a reason is allowed`(text: String) {
        #expect(broken(Rule.uncheckedPromises, ["Sources/A/B.swift": text]).isEmpty)
    }

    @Test func `something left for later is found`() {
        let texts = [
            "Sources/A/B.swift": "let TODO = 1\n// TODO: more", "script/run": "# FIXME later",
            "Tests/A/B.swift": "let a = \"FIXME\"  // TODOS",
        ]
        #expect(broken(Rule.unfinished, texts) == ["Sources/A/B.swift:2", "script/run:1"])
    }

    @Test func `a link that leads nowhere is found`() {
        let texts = [
            "README.md": """
            [a](docs/guide.md) [b](docs/none.md) and [c](docs/guide.md#the-way-in "Title")
            [d](docs/guide.md#no-way) [e](https://example.com/none) [f](Sources/A)
            `[g](none.md)` [h](../outside.md) [i](#here) [j](#there)
            ```
            [k](none.md)
            ```
            # Here
            [l]: none.txt
            """,
            "docs/guide.md": "## The `way`, in\n[up](../README.md) [down](decisions/none.md)",
        ]
        #expect(
            broken(Rule.links, texts, others: ["Sources/A/B.c"]) == [
                "README.md:1", "README.md:2", "README.md:3", "README.md:8", "docs/guide.md:2",
            ])
        let messages = Rule.links.check(Tree(texts)).map(\.message)
        #expect(messages.contains("'docs/none.md' leads nowhere; there is no docs/none.md"))
        #expect(messages.contains("'../outside.md' leads out of the repository"))
        #expect(messages.contains("'#there' leads to a heading that README.md doesn't have"))
    }

    @Test func `a missing document that is named is found`() {
        let texts = [
            "Sources/A/B.swift": "// See docs/a.md.\n// See docs/b.md.\nlet c = \"docs/c.md\"",
            "docs/a.md": "docs/decisions/ and docs/", "docs/decisions/0001-x.md": "",
            ".ci/run": "cat docs/none.txt", "CHANGELOG.md": "https://x.org/docs/none",
        ]
        #expect(broken(Rule.documents, texts) == ["Sources/A/B.swift:2", ".ci/run:1"])
    }

    @Test func `a tree on disk is read without hidden files`() throws {
        let top = FileManager.default.temporaryDirectory.appending(path: "tree-\(UUID())")
        defer { try? FileManager.default.removeItem(at: top) }
        for path in ["Sources/A/B.swift", "Sources/A/b.c", ".ci/run", ".build/x.swift"] {
            let file = top.appending(path: path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data("import Foundation\n".utf8).write(to: file)
        }
        let tree = try Tree(at: top)
        #expect(tree.paths == ["Sources/A/B.swift", "Sources/A/b.c", ".ci/run"])
        #expect(Set(tree.texts.keys) == ["Sources/A/B.swift", ".ci/run"])
        #expect(tree.holds("Sources/A") && !tree.holds("Sources/C"))
    }
}
