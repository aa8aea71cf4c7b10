import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// Questions about what doesn't exist, and about what is not there at the moment.
    struct AbsenceTests {
        @Test func `the log of a missing store is not found`() async throws {
            try await withWitness { witness in
                for target in ["nothing", "counter/other"] {
                    let outcome = try await witness.run("log", "--target", target)
                    #expect(outcome.end == .exited(84), "\(target): \(outcome.message)")
                    #expect(outcome.message.contains("There is no \(target)"), "\(outcome.message)")
                }
                // The document's only entry is the one that created it, and that entry is older.
                let last = try await witness.site.dispatch(
                    "increment", to: "counter", at: witness.address)
                let quiet = try await witness.run(
                    "log", "--target", "document/*", "--from", "\(last)")
                #expect(quiet.end == .exited(0), "\(quiet.message)")
                #expect(quiet.output.isEmpty)
            }
        }

        @Test func `observe waits for no node of a store that does not exist`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                for words in [[], ["--follow"], ["--node", "alpha"]] {
                    let child = try site.start(
                        ["observe", "counter", "--timeout", "60s", "--connect", sequencer.address]
                            + words)
                    let outcome = try await Tool.outcome(of: child, within: .seconds(30))
                    #expect(outcome.end == .exited(84), "\(outcome.message)")
                    #expect(outcome.message.contains("counter/shared"), "\(outcome.message)")
                }
            }
        }

        @Test func `observe waits for a node of an existing store`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let worker = try await site.worker("alpha", of: sequencer)
                worker.child.signal(SIGTERM)
                #expect(try await worker.child.end() == .exited(0))

                let options = ["--json", "--connect", sequencer.address]
                let node = ["--node", "alpha"]
                for words in [[], ["--follow"], node, node + ["--follow"]] {
                    let command = ["observe", "counter"] + words
                    let begun = ContinuousClock.now
                    let late = try await Tool.outcome(
                        of: try site.start(command + ["--timeout", "1s"] + options))
                    let time = ContinuousClock.now - begun
                    let waits = late.errors.filter { $0.contains("waiting for") }
                    #expect(late.end == .exited(84), "\(late.title): \(late.message)")
                    // It waits once, and as long as it was told to.
                    #expect(waits.count == 1 && time >= .seconds(1), "\(late.title): \(time)")
                    #expect(late.message.contains("counter/shared"), "\(late.message)")

                    let observing = try site.start(command + ["--timeout", "60s"] + options)
                    _ = try await observing.errors.first { $0.contains("waiting for") }
                    let next = try await site.worker("alpha", of: sequencer)
                    let line = try await observing.output.first { _ in true }.1
                    #expect(try Sighting(line, of: "counter").node == "alpha")
                    if words.contains("--follow") {
                        let sequence = try await site.dispatch(
                            "increment", to: "counter", at: sequencer.address)
                        _ = try await observing.output.first { line in
                            try Sighting(line, of: "counter").sequence == sequence
                        }
                    }
                    observing.signal(SIGINT)
                    #expect(try await observing.end() == .exited(0))
                    next.child.signal(SIGTERM)
                    #expect(try await next.child.end() == .exited(0))
                }
            }
        }
    }
}
