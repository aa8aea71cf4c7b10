import Foundation
import Testing

/// `script/figures/generate`, on this repository and on a small one.
struct FigureTests {
    private static let figures = """
        {
         "runs": {
          "race": {
           "date": "2026-01-02", "revision": "1a2b3c4d", "machine": "a snail", "method": "a stopwatch",
           "rows": [
            {"workload": "race", "name": "a lap; partner: a hare", "unit": "ms",
             "conflux": {"median": 164.3, "min": 142, "max": 217.8},
             "partner": {"median": 9.5, "min": 9.5, "max": 9.5}, "ratio": {"median": 17.3, "min": 15, "max": 23}}
           ]
          }
         },
         "pictures": {},
         "quotes": {
          "lap": {"run": "race", "row": "a lap; partner: a hare", "divisor": 1000},
          "hare": {"run": "race", "row": "a lap; partner: a hare", "side": "partner"}
         }
        }
        """

    private struct Outcome {
        let code: Int32
        let text: String
    }

    private func generate(_ arguments: String..., input: String = "") throws -> Outcome {
        let (process, output, standardInput) = (Process(), Pipe(), Pipe())
        process.executableURL = try Tree.top().appending(path: "script/figures/generate")
        process.arguments = arguments
        process.standardInput = standardInput
        process.standardOutput = output
        process.standardError = output
        try process.run()
        try standardInput.fileHandleForWriting.write(contentsOf: Data(input.utf8))
        try standardInput.fileHandleForWriting.close()
        let text = String(
            decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return Outcome(code: process.terminationStatus, text: text)
    }

    /// Makes a small repository with a first page, and removes it afterwards.
    private func withPage(_ page: String, _ body: (URL) throws -> Void) throws {
        let root = FileManager.default.temporaryDirectory
            .appendingPathComponent("conflux-figures-\(UUID().uuidString)")
        defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: root) } }
        try FileManager.default.createDirectory(
            at: root.appending(path: "docs"), withIntermediateDirectories: true)
        try Data(Self.figures.utf8).write(to: root.appending(path: "docs/figures.json"))
        try Data(page.utf8).write(to: root.appending(path: "README.md"))
        try body(root)
    }

    private func page(_ root: URL) throws -> String {
        try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
    }

    @Test func `every figure in the documents is the measured one`() throws {
        let outcome = try generate("--check")
        #expect(outcome.code == 0, "\(outcome.text)")
    }

    @Test func `a quote that is not the measured figure is found, and written anew`() throws {
        try withPage("A lap takes <!--=lap-->0.15<!--/--> s.\n") { root in
            let check = try generate("--check", "--root", root.path)
            #expect(check.code == 1 && check.text.contains("README.md differs"))
            #expect(try generate("--root", root.path).code == 0)
            #expect(try page(root) == "A lap takes <!--=lap-->0.16<!--/--> s.\n")
            #expect(try generate("--check", "--root", root.path).code == 0)
        }
    }

    @Test(arguments: [
        "One lap takes 16 ms.", "It sends 2.3 million small actions a second.", "5 M actions/s",
        "9,000 entries/s",
    ])
    func `a figure of speed that is not quoted is found`(text: String) throws {
        try withPage("# Race\n\n\(text)\n") { root in
            let check = try generate("--check", "--root", root.path)
            #expect(check.code == 1 && check.text.contains("README.md:3"), "\(check.text)")
        }
    }

    @Test func `a table is the run's rows`() throws {
        try withPage("<!-- figures: race -->\nold\n<!-- /figures -->\n") { root in
            let outcome = try generate("--root", root.path)
            #expect(outcome.code == 0, "\(outcome.text)")
            let page = try page(root)
            #expect(
                page == """
                    <!-- figures: race -->
                    | workload | what | unit | Conflux | partner | ratio |
                    |---|---|---|---|---|---|
                    | race | a lap; partner: a hare | ms | 164.3 [142.0–217.8] | 9.50 | 17.30 [15.00–23.00] |

                    *2026-01-02, revision 1a2b3c4d, `a stopwatch`, a snail*
                    <!-- /figures -->

                    """)
        }
    }

    @Test func `a recorded run replaces the former one, and the pages follow`() throws {
        try withPage("The hare takes <!--=hare-->9.5<!--/--> s.\n") { root in
            let git = Process()
            git.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            git.arguments = [
                "sh", "-c",
                "cd '\(root.path)' && git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m a",
            ]
            try git.run()
            git.waitUntilExit()
            let row = """
                {"conflux":{"max":3,"median":2,"min":1},"isHigherBetter":false,"name":"a lap; partner: a hare",\
                "partner":{"max":8,"median":7.123456,"min":6},"unit":"ms","workload":"race"}

                """
            let outcome = try generate(
                "--root", root.path, "--record", "race", "--method", "script/bench race", input: row
            )
            #expect(outcome.code == 0, "\(outcome.text)")
            #expect(try page(root) == "The hare takes <!--=hare-->7.1<!--/--> s.\n")
            let kept = try String(
                contentsOf: root.appending(path: "docs/figures.json"), encoding: .utf8)
            #expect(kept.contains(#""method": "script/bench race""#) && !kept.contains("a snail"))
        }
    }

    @Test func `a quote of a row that is not there is an error that names it`() throws {
        try withPage("<!--=tortoise-->1<!--/-->\n") { root in
            let check = try generate("--check", "--root", root.path)
            #expect(check.code == 1 && check.text.contains("no quote tortoise"))
        }
    }
}
