import Conflux
import Foundation
import Testing

/// Bytes that are not UTF-8: they are refused with their place, and nothing takes them for other bytes.
struct BytesTests {
    /// Runs the tool with the words of a shell, in which `$(printf '\351')` is a byte.
    private func run(
        _ site: Site, _ words: String, variables: [String: String] = [:]
    ) async throws -> Tool.Outcome {
        let child = try Tool.start(
            ["-c", "exec \"$0\" \(words)", Tool.path], program: "/bin/sh",
            variables: variables.merging(["HOME": site.folder]) { $1 })
        return try await Tool.outcome(of: child)
    }

    @Test(arguments: [
        (#"dispatch document "$(printf 'caf\351')" --connect tcp://127.0.0.1:1"#, 3),
        (#"dispatch counter increment --resume "$(printf 'k\351')""#, 5),
        (#"sequencer --data "$(printf 'log\377')""#, 3),
        (#"observe counter --path="$(printf '/\300\257')""#, 3),
        (#""$(printf '\200')""#, 1),
    ])
    func `an argument that is not UTF-8 is refused`(words: String, number: Int) async throws {
        try await withSite { site in
            let outcome = try await run(site, words)
            #expect(outcome.end == .exited(64), "\(outcome.message)")
            #expect(
                outcome.message.contains("argument \(number) is not UTF-8"), "\(outcome.message)")
            let json = try await run(site, "\(words) --json")
            #expect(json.end == .exited(64))
            let error = try object(try #require(json.errors.last))[key: "error"]
            #expect(error?[key: "code"] == "usage", "\(json.message)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: site.folder) == [])
        }
    }

    @Test(arguments: ["CONFLUX_DATA", "CONFLUX_CONNECT", "HOME", "XDG_CONFIG_HOME"])
    func `a variable that is read must be UTF-8, and others need not`(name: String) async throws {
        try await withSite { site in
            func line(_ name: String) -> [String] {
                ["-c", #"export "$1=$(printf '/\351')"; exec "$0" context"#, Tool.path, name]
            }
            let refused = try await Tool.outcome(
                of: try Tool.start(line(name), program: "/bin/sh"))
            #expect(refused.end == .exited(64))
            #expect(
                refused.message.contains("the variable \(name) is not UTF-8: byte 0xE9"),
                "\(refused.message)")
            let ignored = try await Tool.outcome(
                of: try Tool.start(line("OLDPWD"), program: "/bin/sh"))
            #expect(ignored.end == .exited(0), "\(ignored.message)")
        }
    }

    @Test
    func `a line that is not UTF-8 is refused with its number, and the others are dispatched`()
        async throws
    {
        try await withSite { site in
            let sequencer = try await site.sequencer()
            _ = try await site.worker("alpha", of: sequencer)
            func set(_ value: [UInt8]) -> [UInt8] {
                Array(#"{"set":{"at":"/a","value":""#.utf8) + value + Array("\"}}\r\n".utf8)
            }
            let bytes: [UInt8] =
                [0xEF, 0xBB, 0xBF] + set(Array("one".utf8)) + set(Array("caf".utf8) + [0xE9])
                + set(Array(#"\ud800"#.utf8)) + set(Array("two".utf8))
            let path = site.path("lines")
            try Data(bytes).write(to: URL(filePath: path))
            let outcome = try await site.run(
                "dispatch", "document", "--file", path, "--json", "--connect", sequencer.address)
            #expect(outcome.end == .exited(65))
            let lines = try outcome.output.map { try object($0) }
            #expect(lines.count == 4)
            #expect(
                lines.map { $0[key: "error"]?[key: "code"] == "invalidAction" } == [
                    false, true, true, false,
                ])
            #expect(lines[1][key: "line"]?.number == 2)
            let message = lines[1][key: "error"]?[key: "message"]?.string ?? ""
            #expect(message.contains("byte 0xE9 (at byte 30)"), "\(message)")
            let log = try await site.run("log", "--json", "--connect", sequencer.address)
            #expect(!log.output.contains { $0.contains("caf") || $0.contains("\u{FFFD}") })
        }
    }

    @Test func `an address of libzmq that means something else here is refused`() async throws {
        for address in ["ipc://@name", "ipc://name", "ipc://*"] {
            let outcome = try await Tool.outcome(
                of: try Tool.start(["sequencer", "--memory", "--bind", address]))
            #expect(outcome.end == .exited(64))
            #expect(outcome.message.contains("must begin with /"), "\(outcome.message)")
        }
    }

    @Test func `an ipc address without its folder ends with the code for what can't be made`()
        async throws
    {
        try await withSite { site in
            let outcome = try await site.run(
                "sequencer", "--memory", "--bind", "ipc://\(site.path("no/socket"))")
            #expect(outcome.end == .exited(73), "\(outcome.message)")
            #expect(
                outcome.message.contains("The folder of the ipc path must exist"),
                "\(outcome.message)")
        }
    }

    @Test func `keys, lists of keys and contexts are read as editors save them`() async throws {
        try await withSite { site in
            for name in ["server", "client"] {
                let made = try await site.run("keygen", site.path(name))
                #expect(made.end == .exited(0))
            }
            /// Rewrites a file as an editor of another system does.
            func edit(_ name: String) throws -> String {
                let path = site.path(name)
                let text = try String(contentsOfFile: path, encoding: .utf8)
                let mode = try FileManager.default.attributesOfItem(atPath: path)
                let edited = "\u{FEFF}" + text.replacing("\n", with: "\r\n")
                try Data(edited.utf8).write(to: URL(filePath: path))
                try FileManager.default.setAttributes(
                    [.posixPermissions: mode[.posixPermissions] ?? 0], ofItemAtPath: path)
                return path
            }
            let key = try String(contentsOfFile: site.path("client.public"), encoding: .utf8)
                .split(separator: "\n")[1]
            _ = try site.write("# keys\n\nclient \(key) all\n", to: "authorized")
            let sequencer = try await site.sequencer(
                data: "log", "--curve-secret", try edit("server.secret"), "--authorized",
                try edit("authorized"))
            let contexts = site.path("conflux/contexts.json")
            try FileManager.default.createDirectory(
                atPath: site.path("conflux"), withIntermediateDirectories: true)
            let fields: JSONValue = [
                "contexts": [
                    "here": [
                        "connect": .string(sequencer.address),
                        "curveSecret": .string(try edit("client.secret")),
                        "serverKey": .string(try edit("server.public")),
                    ]
                ], "current": "here",
            ]
            try Data("\u{FEFF}\(fields)\r\n".utf8).write(to: URL(filePath: contexts))
            let status = try await Tool.outcome(
                of: try Tool.start(["status"], variables: ["XDG_CONFIG_HOME": site.folder]))
            #expect(status.end == .exited(0), "\(status.message)")

            _ = try site.write("", to: "authorized")
            try Data(Array("# caf".utf8) + [0xE9, 0x0A]).write(
                to: URL(filePath: site.path("authorized")))
            let reload = try await Tool.outcome(
                of: try Tool.start(["reload"], variables: ["XDG_CONFIG_HOME": site.folder]))
            #expect(reload.end == .exited(66))
            #expect(
                reload.message.contains("line 1: byte 0xE9 at offset 5 is not UTF-8"),
                "\(reload.message)")
        }
    }
}
