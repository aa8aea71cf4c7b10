import Foundation
import Testing

#if os(Linux)
    /// Results that cannot be written.
    struct FullOutputTests {
        @Test(arguments: [
            ["--help"], ["status"], ["log"], ["log", "--json"], ["observe", "counter"],
            ["dispatch", "counter/*", #"{"increment":{}}"#, "--json"],
        ])
        func `a command whose results can't be written says so, and fails`(
            words: [String]
        ) async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                _ = try await site.worker("alpha", of: sequencer, stores: ["counter"])
                let address =
                    words.count == 1 && words[0] == "--help"
                    ? [] : ["--connect", sequencer.address]
                let child = try site.start(words + address, output: .file("/dev/full"))
                let outcome = try await Tool.outcome(of: child, within: .seconds(60))
                #expect(outcome.end == .exited(74), "\(outcome)")
                #expect(
                    outcome.message.contains("No space left on device. The disk is full."),
                    "\(outcome)")
            }
        }
    }
#endif
