import Conflux
import Foundation
import Testing

/// Files that the system refuses to open, read or write: the message names the file, has the system's words, and says
/// what to do about that cause.
struct RefusedFileTests {
    /// A command line that takes a path, and the exit code when the path can't be used.
    struct Use: CustomTestStringConvertible {
        let words: [String]
        let code: Int32

        /// The words stand before the path, which is the last one.
        init(_ code: Int32, _ words: String...) {
            self.words = words
            self.code = code
        }

        var testDescription: String { words.joined(separator: " ") }
    }

    /// Every option that takes a path. The words in capitals are replaced by what they stand for.
    static let uses = [
        Use(73, "keygen"), Use(73, "sequencer", "--bind", "tcp://127.0.0.1:0", "--data"),
        Use(66, "status", "--server-key", "KEY", "--curve-secret"),
        Use(66, "status", "--curve-secret", "SECRET", "--server-key"),
        Use(66, "sequencer", "--memory", "--curve-secret", "SECRET", "--authorized"),
        Use(66, "sequencer", "--memory", "--http", "127.0.0.1:0", "--http-token"),
        Use(66, "sequencer", "--log", "etcd://127.0.0.1:1/log", "--log-user"),
        Use(66, "sequencer", "--log", "etcds://127.0.0.1:1/log", "--log-ca"),
        Use(73, "backup", "--data", "LOG"), Use(73, "backup", "NEW", "--data"),
        Use(73, "restore", "LOG", "--data"),
        Use(
            73, "worker", "--name", "alpha", "--store", "counter", "--connect", "HERE", "--journal"),
        Use(66, "dispatch", "counter", "--connect", "HERE", "--file"),
    ]

    /// Runs a command with a path, and with what its other options need.
    private func run(_ use: Use, at path: String, _ site: Site) async throws -> Tool.Outcome {
        var words: [String] = []
        for word in use.words {
            switch word {
            case "SECRET":
                _ = try await site.run("keygen", site.path("own"))
                words.append(site.path("own.secret"))
            case "KEY": words += try await site.run("keygen", site.path("other")).output
            case "NEW": words.append(site.path("new"))
            case "LOG":
                let sequencer = try await site.sequencer(data: "log")
                sequencer.child.signal(SIGTERM)
                #expect(try await sequencer.child.end() == .exited(0))
                words.append(site.path("log"))
            case "HERE": words.append(try await site.sequencer().address)
            default: words.append(word)
            }
        }
        return try await Tool.outcome(of: try site.start(words + [path, "--json"]))
    }

    private func check(
        _ outcome: Tool.Outcome, _ code: Int32, _ parts: String...
    ) throws {
        #expect(outcome.end == .exited(code), "\(outcome)")
        let error = try object(try #require(outcome.errors.last))[key: "error"]
        let message = error?[key: "message"]?.string ?? ""
        for part in parts { #expect(message.contains(part), "\(part) is missing: \(message)") }
    }

    @Test(arguments: uses)
    func `a path through a file says that a part of it is no folder`(use: Use) async throws {
        try await withSite { site in
            let path = try site.write("", to: "plain") + "/name"
            try check(
                try await run(use, at: path, site), use.code, site.path("plain"),
                "Not a directory", "A part of the path is a file")
        }
    }

    @Test(arguments: uses)
    func `a name that is too long is called so`(use: Use) async throws {
        try await withSite { site in
            let path = site.path(String(repeating: "n", count: 300))
            try check(
                try await run(use, at: path, site), use.code, path,
                "File name too long", "The path, or a name in it, is longer than the system allows")
        }
    }

    @Test(arguments: uses.filter { $0.code == 66 })
    func `a folder in the place of a file is called so`(use: Use) async throws {
        try await withSite { site in
            try check(try await run(use, at: site.folder, site), use.code, site.folder, "folder")
        }
    }

    @Test func `an ipc address through a file does not say that it is in use`() async throws {
        try await withSite { site in
            let address = "ipc://\(try site.write("", to: "plain"))/socket"
            let outcome = try await site.run("sequencer", "--memory", "--json", "--bind", address)
            try check(outcome, 73, address, "Not a directory. A part of the path is a file")
            #expect(!outcome.message.contains("in use"), "\(outcome.message)")
        }
    }

    @Test func `a path is taken byte for byte`() async throws {
        try await withSite { site in
            let made = try await site.run("keygen", site.path("own"))
            let list = try site.write("own \(made.output[0]) all\n", to: "a%41#b?c ~")
            let keys = ["--curve-secret", site.path("own.secret"), "--authorized"]
            _ = try await site.sequencer(
                "--curve-secret", site.path("own.secret"), "--authorized", list)
            let line = ["sequencer", "--memory", "--json", "--bind", "tcp://127.0.0.1:0"] + keys
            let outcome = try await Tool.outcome(of: try site.start(line + [list + "/"]))
            try check(outcome, 66, list + "/", "Not a directory")
        }
    }

    /// In units of 512 or 1,024 bytes, whichever the shell has.
    @Test(arguments: [1, 10, 50, 100, 1_000])
    func `a log whose files may not be large enough names the limit`(units: Int) async throws {
        try await withSite { site in
            let outcome = try await Tool.outcome(
                of: try site.start(
                    ["sequencer", "--bind", "tcp://127.0.0.1:0", "--json", "--data"]
                        + [site.path("log")],
                    behind: ["/bin/sh", "-c", "ulimit -f \(units); exec \"$@\"", "sh"]))
            try check(outcome, 73, site.path("log"), "File too large", "ulimit -f")
        }
    }

    @Test func `contexts that can't be read or saved say why`() async throws {
        try await withSite { site in
            func run(
                _ words: [String], at home: String, limit: String = ":"
            ) async throws -> Tool.Outcome {
                try await Tool.outcome(
                    of: try site.start(
                        ["context"] + words + ["--json"],
                        behind: ["/bin/sh", "-c", "\(limit); exec \"$@\"", "sh"],
                        variables: ["XDG_CONFIG_HOME": home]))
            }
            let set = ["set", "here", "--connect", "tcp://127.0.0.1:1"]
            let plain = try site.write("", to: "plain")
            try check(
                try await run(set, at: plain), 73, plain,
                "Not a directory. A part of the path is a file")
            try FileManager.default.createDirectory(
                atPath: site.path("conflux/contexts.json"), withIntermediateDirectories: true)
            try check(
                try await run([], at: site.folder), 66, "contexts.json",
                "Is a directory. It is a folder.")
        }
    }

    @Test func `a sequencer whose log was moved says so by a code of its own`() async throws {
        try await withSite { site in
            let sequencer = try await site.sequencer(data: "log")
            try FileManager.default.moveItem(atPath: site.path("log"), toPath: site.path("aside"))
            let refused = try await site.run(
                "dispatch", "counter", "increment", "--connect", sequencer.address)
            #expect(refused.end != .exited(0), "\(refused)")
            let outcome = try await Tool.outcome(of: sequencer.child)
            #expect(outcome.end == .exited(74), "\(outcome)")
            let error = try object(try #require(outcome.errors.last))[key: "error"]
            #expect(error?[key: "code"] == "logMoved", "\(outcome.message)")
        }
    }
}
