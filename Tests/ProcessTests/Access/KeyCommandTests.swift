import Foundation
import Testing

/// The commands with which an operator makes and uses keys.
struct KeyCommandTests {
    private func key(_ name: String, of site: Site) throws -> String {
        let text = try String(contentsOfFile: site.path("\(name).public"), encoding: .utf8)
        return try #require(text.split(separator: "\n").last.map(String.init))
    }

    /// Makes key pairs, and authorises some of them.
    private func makeKeys(_ site: Site, authorized: [String]) async throws {
        for name in ["sequencer", "alpha", "beta"] {
            let outcome = try await site.run("keygen", site.path(name))
            #expect(outcome.end == .exited(0) && outcome.errors.isEmpty)
            #expect(outcome.output == [try key(name, of: site)])
        }
        try authorize(authorized, site)
    }

    private func authorize(_ names: [String], _ site: Site, _ more: String = "") throws {
        let lines = try names.map { "\($0) \(try key($0, of: site)) all\n" }
        _ = try site.write("# who may connect\n" + lines.joined() + more, to: "authorized")
    }

    private func sequencer(_ site: Site) async throws -> RunningSequencer {
        try await site.sequencer(
            "--curve-secret", site.path("sequencer.secret"), "--authorized",
            site.path("authorized"))
    }

    private func options(
        _ site: Site, _ name: String, server: String = "sequencer.public"
    ) -> [String] {
        ["--curve-secret", site.path("\(name).secret"), "--server-key", site.path(server)]
    }

    private func status(
        _ site: Site, of sequencer: RunningSequencer, as name: String?,
        server: String = "sequencer.public"
    ) async throws -> Tool.Outcome {
        let keys = name.map { options(site, $0, server: server) }
        return try await Tool.outcome(
            of: try site.start(["status", "--connect", sequencer.address] + (keys ?? [])),
            within: .seconds(60))
    }

    @Test func `a client with an authorised key is admitted, and others learn why not`()
        async throws
    {
        try await withSite { site in
            try await makeKeys(site, authorized: ["alpha"])
            let sequencer = try await sequencer(site)
            #expect(sequencer.ready[key: "insecure"] == .bool(false))
            #expect(try await status(site, of: sequencer, as: "alpha").end == .exited(0))
            for (name, server, words) in [
                ("beta", "sequencer.public", "does not admit this node's key"),
                ("alpha", "beta.public", "has another key"),
                (nil, "", "encrypts its connections"),
            ] as [(String?, String, String)] {
                let outcome = try await status(site, of: sequencer, as: name, server: server)
                #expect(outcome.end == .exited(77))
                #expect(outcome.message.contains(words), "\(outcome.message)")
            }
        }
    }

    @Test func `keys are read again at SIGHUP, and an invalid file changes nothing`()
        async throws
    {
        try await withSite { site in
            try await makeKeys(site, authorized: ["alpha"])
            let sequencer = try await sequencer(site)
            try authorize(["alpha"], site, "gamma\n")
            sequencer.child.signal(SIGHUP)
            _ = try await sequencer.child.errors.first { $0.contains("line 3") }
            #expect(try await status(site, of: sequencer, as: "alpha").end == .exited(0))
            try authorize(["beta"], site)
            sequencer.child.signal(SIGHUP)
            _ = try await sequencer.child.output.first { $0.contains("\"authorized\"") }
            #expect(try await status(site, of: sequencer, as: "beta").end == .exited(0))
            #expect(try await status(site, of: sequencer, as: "alpha").end == .exited(77))
        }
    }

    @Test func `a session belongs to the key that opened it`() async throws {
        try await withSite { site in
            try await makeKeys(site, authorized: ["alpha", "beta"])
            _ = try await site.run("keygen", site.path("alpha-2"))
            let sequencer = try await sequencer(site)
            _ = try await site.worker("w1", of: sequencer, options: options(site, "beta"))
            let path = try site.write(#"{"set":{"at":"/a","value":1}}"# + "\n", to: "lines")
            /// Whether an earlier process has already dispatched the line.
            func isResumed(as name: String) async throws -> Bool {
                let child = try site.start(
                    [
                        "dispatch", "document/*", "--file", path, "--resume", "nightly", "--json",
                        "--connect", sequencer.address,
                    ] + options(site, name))
                let outcome = try await Tool.outcome(of: child, within: .seconds(60))
                #expect(outcome.end == .exited(0) && outcome.output.count == 1)
                return try object(outcome.output.first ?? "")[key: "resumed"] == true
            }
            #expect(try await !isResumed(as: "alpha"))
            // A key can't resume the session of another key, though it has the same name.
            #expect(try await !isResumed(as: "beta"))
            #expect(try await isResumed(as: "alpha"))
            // The key is replaced, but its name stays.
            try authorize(["beta"], site, "alpha \(try key("alpha-2", of: site)) all\n")
            sequencer.child.signal(SIGHUP)
            _ = try await sequencer.child.output.first { $0.contains("\"authorized\"") }
            #expect(try await isResumed(as: "alpha-2"))
        }
    }

    @Test func `no key is overwritten, printed or read by others`() async throws {
        try await withSite { site in
            try await makeKeys(site, authorized: ["alpha"])
            let before = try String(contentsOfFile: site.path("alpha.secret"), encoding: .utf8)
            let again = try await site.run("keygen", site.path("alpha"))
            #expect(again.end == .exited(73) && again.message.contains("not overwritten"))
            let after = try String(contentsOfFile: site.path("alpha.secret"), encoding: .utf8)
            #expect(after == before)
            let secret = try #require(before.split(separator: "\n").last)
            chmod(site.path("alpha.secret"), 0o644)
            let open = try await site.run(
                "status", "--curve-secret", site.path("alpha.secret"), "--server-key",
                site.path("sequencer.public"))
            #expect(open.end == .exited(66) && open.message.contains("chmod 600"))
            #expect(!open.message.contains(secret) && !again.message.contains(secret))
        }
    }

    @Test(arguments: [
        ["--bind", "tcp://*:0"], ["--feed", "tcp://0.0.0.0:0"], ["--curve-secret", "x"],
        ["--authorized", "x"], ["--insecure", "--curve-secret", "x", "--authorized", "y"],
    ])
    func `a sequencer is not opened to others by mistake`(options: [String]) async throws {
        try await withSite { site in
            let bind = options.contains("--bind") ? [] : ["--bind", "tcp://127.0.0.1:0"]
            let child = try site.start(["sequencer", "--memory"] + bind + options)
            let outcome = try await Tool.outcome(of: child, within: .seconds(60))
            #expect(outcome.end == .exited(64) && outcome.output.isEmpty)
        }
    }

    @Test func `a sequencer that everybody may use says so in its first line`() async throws {
        try await withSite { site in
            let child = try site.start(
                ["sequencer", "--memory", "--insecure", "--bind", "tcp://*:0"])
            let (_, line) = try await child.output.first { _ in true }
            #expect(line.contains("ready") && line.contains("INSECURE"))
        }
    }
}
