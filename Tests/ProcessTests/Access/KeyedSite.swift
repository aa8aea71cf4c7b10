import Foundation
import Testing

/// A sequencer that admits only keys, each of which has the given rights.
struct KeyedSite: Sendable {
    let site: Site
    let sequencer: RunningSequencer

    init(_ site: Site, _ rights: [String: String]) async throws {
        self.site = site
        for name in ["sequencer"] + rights.keys {
            let outcome = try await site.run("keygen", site.path(name))
            #expect(outcome.end == .exited(0))
        }
        try Self.authorize(site, rights)
        sequencer = try await site.sequencer(
            "--curve-secret", site.path("sequencer.secret"), "--authorized",
            site.path("authorized"))
    }

    /// Writes the file of authorised keys.
    func authorize(_ rights: [String: String]) throws { try Self.authorize(site, rights) }

    private static func authorize(_ site: Site, _ rights: [String: String]) throws {
        let lines = try rights.map { name, rights in
            let file = try String(contentsOfFile: site.path("\(name).public"), encoding: .utf8)
            let key = try #require(file.split(separator: "\n").last)
            return "\(name) \(key) \(rights)\n"
        }
        _ = try site.write(lines.joined(), to: "authorized")
    }

    /// The options with which a command connects as the holder of a key.
    func options(_ name: String) -> [String] {
        [
            "--curve-secret", site.path("\(name).secret"), "--server-key",
            site.path("sequencer.public"),
        ]
    }

    /// Runs a command as the holder of a key.
    func run(_ name: String, _ words: String...) async throws -> Tool.Outcome {
        try await run(name, words)
    }

    /// Runs a command as the holder of a key.
    func run(_ name: String, _ words: [String]) async throws -> Tool.Outcome {
        try await Tool.outcome(
            of: try site.start(words + ["--connect", sequencer.address] + options(name)),
            within: .seconds(60))
    }
}
