import Foundation
import Testing

/// Runs the scripts in `Scripts/`, and compares their effects with the golden ones. With
/// `CONFLUX_REWRITE=1`, it writes the effects. Read them before you keep them.
struct Scripts {
    /// A script of the repository.
    struct File: CustomTestStringConvertible, Sendable {
        let url: URL
        var testDescription: String { name }
        var name: String {
            url.pathComponents.suffix(2).joined(separator: "/")
        }
    }

    static let folder = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Scripts")

    static let files: [File] = {
        let found = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
        return (found?.compactMap { $0 as? URL } ?? [])
            .filter { $0.pathExtension == "scenario" }
            .sorted { $0.path < $1.path }.map { File(url: $0) }
    }()

    @Test(arguments: files)
    func `the effects of a script are the golden ones`(file: File) throws {
        let text = try String(contentsOf: file.url, encoding: .utf8)
        var script = try Script(text)
        var run = ScriptRun()
        let isRewritten = environment("CONFLUX_REWRITE") == "1"
        for (index, command) in script.commands.enumerated() {
            let effects = try run.perform(command)
            if effects != command.effects, !isRewritten {
                let difference = Script.difference(golden: command.effects, found: effects)
                Issue.record(
                    """
                    \(file.name):\(command.line): '\(command.text)' has other effects. Where they \
                    are right, write them by CONFLUX_REWRITE=1 swift test --filter Scripts
                    \(difference)
                    """)
                // All later effects may differ because of this difference.
                return
            }
            script.commands[index].effects = effects
        }
        if isRewritten {
            try script.text.write(to: file.url, atomically: true, encoding: .utf8)
        } else {
            #expect(script.text == text, "\(file.name): only its layout differs; rewrite it")
        }
    }

    @Test func `every command is used in a script`() throws {
        var seen: Set<String> = []
        for file in Self.files {
            let script = try Script(String(contentsOf: file.url, encoding: .utf8))
            seen.formUnion(script.commands.compactMap(\.words.first))
            seen.formUnion(
                script.commands.filter { $0.words.first == ScriptCommand.given }
                    .compactMap { $0.words.dropFirst().first })
        }
        let known = Set(
            ScriptCommand.grammar.compactMap { form in
                form.form.split(separator: " ").first.map(String.init)
            })
        #expect(seen == known)
    }

    @Test(arguments: [
        ("A\n\nb\n---\njump\n", "line 5: 'jump' is no command; there is: set NAME NUMBER"),
        ("A\n\nb\n---\nstart\njoin\n", "line 6: 'join' is no command; there is: join NODE"),
        ("A\n\nb\n---\nstart\npass 3\n", "line 6: 'pass 3' is no command; there is: pass"),
        ("A\n\nb\n---\nstart\nshow x\n", "line 6: 'show x' names what is not there; nodes are: "),
        ("A\n\nb\n---\nset x 1\n", "line 5: 'set x 1' names what is not there"),
        ("A\n\nb\n---\n  x\n", "line 5: an effect stands below its command"),
        ("A\n\nb\nstart\n", "line 5: a line of three dashes ends the prose"),
        ("A\n---\nstart\n", "line 1: a script begins with its title and what it shows"),
        ("A\n\nb\n---\n", "line 4: a script has at least one command"),
    ])
    func `an invalid script is reported with its line and the reason`(text: String, message: String)
    {
        do {
            let script = try Script(text)
            var run = ScriptRun()
            for command in script.commands { _ = try run.perform(command) }
            Issue.record("it was read")
        } catch {
            #expect("\(error)".hasPrefix(message), "\(error)")
        }
    }

    @Test func `a difference shows kept, removed and new lines`() {
        #expect(
            Script.difference(golden: ["a", "b", "c"], found: ["a", "x", "c", "d"])
                == "  a\n- b\n+ x\n  c\n+ d")
    }
}
