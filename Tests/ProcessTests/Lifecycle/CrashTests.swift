import Conflux
import Foundation
import Spawning
import Testing

extension ProcessTests {
    /// Processes that are killed or stopped while others are at work.
    struct CrashTests {

        @Test func `a killed sequencer is restarted, and nothing is lost or doubled`() async throws
        {
            try await withSeed { seed in
                try await withSite { site in
                    let first = try await site.sequencer(data: "log")
                    let names = ["w1", "w2"]
                    for name in names { _ = try await site.worker(name, of: first) }
                    let streams = try await startStreams(
                        site, first.address, lineCount: 1_200, seed: seed)

                    // Actions in progress: some have their receipts, some are in transit, some were not read yet.
                    for stream in streams { _ = try await stream.child.output.line(100) }
                    first.child.signal(SIGKILL)
                    #expect(try await first.child.end() == .killed(SIGKILL))
                    // Every printed receipt is in the log, whatever happened to the other actions.
                    let given = try streams.flatMap { stream in
                        try stream.child.output.soFar.compactMap {
                            try object($0)[key: "sequence"]?.number
                        }
                    }
                    print("killed after \(given.count) receipts")

                    let second = try await site.sequencer(data: "log", at: first)
                    let epochs = try [first, second].map {
                        try #require($0.ready[key: "epoch"]?.number)
                    }
                    #expect(epochs[0] < epochs[1])
                    let last = try #require(second.ready[key: "last"]?.number)
                    #expect(last > (given.max() ?? 0), "a receipt was given before its entry")
                    for stream in streams { stream.finish() }
                    let expectations = try await outcomes(of: streams)
                    try await site.expectOneHistory(
                        of: expectations, at: second.address, in: names)
                }
            }
        }

        @Test func `a killed worker is restarted with its name`() async throws {
            try await withSeed { seed in
                try await withSite { site in
                    let sequencer = try await site.sequencer(data: "log")
                    let names = ["w1", "w2"]
                    var workers: [RunningWorker] = []
                    for name in names { workers.append(try await site.worker(name, of: sequencer)) }
                    let streams = try await startStreams(
                        site, sequencer.address, lineCount: 400, seed: seed)
                    for stream in streams { _ = try await stream.child.output.line(100) }
                    workers[1].child.signal(SIGKILL)
                    #expect(try await workers[1].child.end() == .killed(SIGKILL))

                    // The new worker doesn't wait until the sequencer notices the other's end by itself.
                    let successor = try await site.worker("w2", of: sequencer)
                    #expect(successor.incarnation != workers[1].incarnation)
                    for stream in streams { stream.finish() }
                    let expectations = try await outcomes(of: streams)
                    try await site.expectOneHistory(
                        of: expectations, at: sequencer.address, in: names)
                }
            }
        }

        @Test func `a stopped worker blocks nobody and catches up`() async throws {
            try await withSeed { seed in
                try await withSite { site in
                    let sequencer = try await site.sequencer(data: "log")
                    let names = ["w1", "w2"]
                    var workers: [RunningWorker] = []
                    for name in names { workers.append(try await site.worker(name, of: sequencer)) }
                    workers[1].child.signal(SIGSTOP)

                    let streams = try await startStreams(
                        site, sequencer.address, lineCount: 400, seed: seed)
                    for stream in streams { stream.finish() }
                    let expectations = try await outcomes(of: streams)
                    let last = expectations.map(\.lastSequence).max() ?? 0
                    _ = try await site.sightings(
                        of: "document", at: sequencer.address, in: ["w1"], from: last,
                        options: ["--node", "w1"])

                    workers[1].child.signal(SIGCONT)
                    try await site.expectOneHistory(
                        of: expectations, at: sequencer.address, in: names)
                    #expect(
                        try await site.liveNodes(at: sequencer.address)["w2"]
                            == workers[1].incarnation)
                }
            }
        }
    }
}

/// Runs a test's body with a seed, which is printed if the test fails.
func withSeed(_ body: (UInt64) async throws -> Void) async throws {
    let given = ProcessInfo.processInfo.environment["CONFLUX_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 0...UInt64.max)
    do {
        try await body(seed)
    } catch {
        throw Failure("CONFLUX_SEED=\(seed): \(error)")
    }
}
