import Conflux
import Foundation
import Testing

extension ProcessTests {
    @Suite struct ContextTests {
        /// Runs a command as a user whose home is in the site's folder.
        private func run(
            _ site: Site, _ words: [String], _ variables: [String: String] = [:]
        ) async throws -> Tool.Outcome {
            let home = ["XDG_CONFIG_HOME": site.folder].merging(variables) { $1 }
            return try await Tool.outcome(of: try Tool.start(words, variables: home))
        }

        private func file(_ site: Site) -> String { site.path("conflux/contexts.json") }

        /// The address that a command tries when nothing answers there.
        private func tried(
            _ site: Site, _ words: String..., variables: [String: String] = [:]
        ) async throws -> String {
            try await run(site, ["status"] + words, variables).message
        }

        @Test
        func `an option wins over a variable, and a variable over the context`()
            async throws
        {
            try await withSite { (site: Site) async throws in
                for (name, port) in [("one", 1), ("two", 2)] {
                    let set = ["context", "set", name, "--connect", "tcp://127.0.0.1:\(port)"]
                    #expect(try await run(site, set).end == .exited(0))
                }
                #expect(try await tried(site, "--context", "two").contains("tcp://127.0.0.1:2."))
                #expect(try await run(site, ["context", "use", "one"]).end == .exited(0))
                #expect(try await tried(site).contains("tcp://127.0.0.1:1."))
                let other = ["CONFLUX_CONTEXT": "two"]
                #expect(try await tried(site, variables: other).contains("tcp://127.0.0.1:2."))
                let variables = ["CONFLUX_CONNECT": "tcp://127.0.0.1:3"]
                #expect(try await tried(site, variables: variables).contains("tcp://127.0.0.1:3."))
                #expect(
                    try await tried(site, "--connect", "tcp://127.0.0.1:4", variables: variables)
                        .contains("tcp://127.0.0.1:4."))
            }
        }

        @Test func `a context has the keys, and is everything that a command needs`() async throws {
            try await withSite { site in
                let keyed = try await KeyedSite(site, ["ops": "all"])
                let set =
                    ["context", "set", "here", "--connect", keyed.sequencer.address]
                    + keyed.options("ops")
                #expect(try await run(site, set).end == .exited(0))
                #expect(try await run(site, ["status", "--context", "here"]).end == .exited(0))
                let mode = try FileManager.default.attributesOfItem(atPath: file(site))
                #expect(mode[.posixPermissions] as? Int == 0o600)
                let names = try FileManager.default.contentsOfDirectory(
                    atPath: site.path("conflux"))
                #expect(names == ["contexts.json"])
            }
        }

        @Test func `an address that no command could use makes no context`() async throws {
            try await withSite { site in
                let set = ["context", "set", "here", "--connect", "nonsense"]
                let outcome = try await run(site, set)
                #expect(outcome.end == .exited(64))
                #expect(outcome.message.contains("write host:port"), "\(outcome.message)")
                #expect(!FileManager.default.fileExists(atPath: file(site)))
            }
        }

        @Test func `contexts are listed, changed and removed`() async throws {
            try await withSite { site in
                let set = ["context", "set", "a", "--connect"]
                _ = try await run(site, set + ["tcp://127.0.0.1:1"])
                _ = try await run(site, set + ["tcp://127.0.0.1:2"])
                _ = try await run(site, ["context", "use", "a"])
                _ = try await run(site, ["context", "set", "longer", "-c", "localhost:3"])
                let table = [
                    "IN USE  CONTEXT  ADDRESS", "*       a        tcp://127.0.0.1:2",
                    "        longer   localhost:3",
                ]
                #expect(try await run(site, ["context", "list"]).output == table)
                #expect(try await run(site, ["context"]).output == table)
                _ = try await run(site, ["context", "remove", "longer"])
                let shown = try await run(site, ["context", "show", "--json"])
                #expect(
                    shown.output
                        == [#"{"connect":"tcp://127.0.0.1:2","current":true,"name":"a"}"#])
                #expect(try await run(site, ["context", "remove", "a"]).end == .exited(0))
                #expect(try await run(site, ["context"]).output.isEmpty)
                #expect(try await run(site, ["context", "show"]).end == .exited(84))
            }
        }

        @Test func `a server's key file whose path could be a key is used as a file, or refused`()
            async throws
        {
            try await withSite { site in
                let keyed = try await KeyedSite(site, ["ops": "all"])
                let tail = UUID().uuidString.lowercased().filter { $0 != "-" }
                let path = "/tmp/key" + tail
                try FileManager.default.copyItem(
                    atPath: site.path("sequencer.public"), toPath: path)
                defer { try? FileManager.default.removeItem(atPath: path) }
                let address = ["--connect", keyed.sequencer.address]
                let secret = ["--curve-secret", site.path("ops.secret"), "--server-key"]
                let refused = try await run(site, ["status"] + address + secret + [path])
                #expect(refused.end == .exited(64) && refused.message.contains("/.\(path)"))
                let set = ["context", "set", "here"] + address + secret
                #expect(try await run(site, set + [path]).end == .exited(64))
                let other = "/tmp/../tmp/key\(tail)"
                #expect(try await run(site, set + [other]).end == .exited(0))
                let status = try await run(site, ["status", "--context", "here"])
                #expect(status.end == .exited(0), "\(status)")
            }
        }

        @Test func `a missing context is reported with those that exist`() async throws {
            try await withSite { site in
                _ = try await run(site, ["context", "set", "a", "--connect", "tcp://127.0.0.1:1"])
                for words in [["status", "--context", "b"], ["context", "use", "b"]] {
                    let run = try await run(site, words)
                    #expect(run.end == .exited(64) && run.message.contains("there are: a."))
                }
                let half = try await run(site, ["context", "set", "a", "--server-key", "x"])
                #expect(half.end == .exited(64))
                #expect(try await run(site, ["context", "set", "b"]).message.contains("--connect"))
            }
        }

        @Test(arguments: [
            "", "{", "[]", #"{"contexts":{"a":{"conect":"x"}}}"#,
            #"{"contexts":{"a":{"connect":7}}}"#,
            #"{"newer":true}"#,
        ])
        func `a broken file is reported and stays unchanged`(text: String) async throws {
            try await withSite { site in
                try FileManager.default.createDirectory(
                    atPath: site.path("conflux"), withIntermediateDirectories: true)
                _ = try site.write(text, to: "conflux/contexts.json")
                for words in [
                    ["status"], ["context"], ["context", "set", "a", "--connect", "tcp://h:1"],
                ] {
                    let run = try await run(site, words + ["--json"])
                    #expect(run.end == .exited(66), "\(words)")
                    let error = try object(try #require(run.errors.last))[key: "error"]
                    #expect(error?[key: "code"] == "contextsUnreadable")
                    #expect(error?[key: "message"]?.string?.contains(file(site)) == true)
                }
                #expect(try String(contentsOfFile: file(site), encoding: .utf8) == text)
            }
        }

        @Test func `a broken file stops no command that has an address`() async throws {
            try await withSite { site in
                try FileManager.default.createDirectory(
                    atPath: site.path("conflux"), withIntermediateDirectories: true)
                _ = try site.write("{", to: "conflux/contexts.json")
                let sequencer = try await site.sequencer()
                let words = ["status", "--connect", sequencer.address]
                let told = try await run(site, words)
                #expect(told.end == .exited(0) && told.message.contains("no context is used"))
                let named = try await run(site, words + ["--context", "a"])
                #expect(named.end == .exited(66), "\(named.message)")
            }
        }
    }
}
