import ConfluxArguments
import ConfluxHashing
import ConfluxVocabulary
import ConfluxWorker
import Testing

@testable import ConfluxCLI

/// `conflux upgrade --check` on states in files.
struct UpgradeCheckTests {
    private func check(
        _ json: String, version: Int, _ options: String...
    ) async throws -> Run {
        let file = try TemporaryFile(json)
        return try await Run.tool(
            [
                "upgrade", "--check", "counter", "--file", file.path, "--schema-version",
                "\(version)", "--json",
            ] + options)
    }

    @Test func `a state that is not changed passes`() async throws {
        let run = try await check(#"{"count":3}"#, version: 1)
        #expect(run.exitCode == .success)
        #expect(run.lines == [#"{"changes":[],"from":1,"store":"counter/shared","to":1}"#])
    }

    @Test func `a state that can't be loaded fails, with the code of the reason`() async throws {
        let changed = try await check(#"{"total":3}"#, version: 1)
        #expect(changed.exitCode == .failed)
        #expect(changed.lines.first?.contains(#""code":"formChanged""#) == true)
        let newer = try await check(#"{"count":3}"#, version: 2)
        #expect(newer.exitCode == .failed)
        #expect(newer.lines.first?.contains(#""code":"newerSnapshot""#) == true)
    }

    @Test func `a state from which the version has risen must become what it became then`()
        async throws
    {
        let state = #"{"count":3}"#
        let digest = Digest(of: Array(state.utf8))
        #expect(
            try await check(state, version: 1, "--in-force", "9:1:\(digest)").exitCode == .success)
        let other = try await check(state, version: 1, "--in-force", "9:1:\(Digest(of: []))")
        #expect(other.exitCode == .failed)
        #expect(
            other.lines.first?.contains("another state of the snapshot of counter at 9") == true)
        let newer = try await check(state, version: 1, "--in-force", "9:2")
        #expect(newer.exitCode == .failed)
        #expect(newer.lines.first?.contains(#""code":"newerSnapshot""#) == true)
    }

    @Test(arguments: [
        (["upgrade"], "--check"),
        (["upgrade", "--check", "counter", "--in-force", "9:1"], "needs --file"),
        (["upgrade", "--check", "counter", "--in-force", "9:1:2"], "what is in force"),
        (["upgrade", "counter", "--in-force", "9:1"], "need --check"),
        (["upgrade", "--check", "poll"], "no state 'poll'"),
        (["upgrade", "--check", "counter", "--file", "a.json"], "go together"),
        (["upgrade", "--check", "--file", "a.json", "--schema-version", "1"], "go together"),
    ])
    func `a line that says too little is a usage error`(
        words: [String], part: String
    ) async throws {
        let error = await #expect(throws: UsageError.self) { _ = try await Run.tool(words) }
        #expect(error?.message.contains(part) == true)
    }
}
