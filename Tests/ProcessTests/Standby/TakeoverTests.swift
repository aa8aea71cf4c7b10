import Conflux
import EtcdCluster
import Foundation
import Spawning
import Synchronization
import Testing

extension ProcessTests {
    /// Measures how long it takes from the end of the serving sequencer to the next receipt.
    @Suite(.serialized, .enabled(if: EtcdCluster.isInstalled)) struct TakeoverTests {
        private static let countName = "CONFLUX_TAKEOVERS"

        @Test
        func `the serving sequencer is killed again and again, and nothing is lost or doubled`()
            async throws
        {
            let count =
                ProcessInfo.processInfo.environment[Self.countName].flatMap { Int($0) } ?? 3
            try await withSeed { seed in
                try await withSite { site in
                    let place = try EtcdCluster.shared.get()
                        .address("conflux/\(UUID().uuidString)")
                    var group = try await site.sequencers(3, log: place)
                    let names = ["w1", "w2"]
                    for name in names {
                        _ = try await site.worker(
                            name, of: group.members[0], at: group.addresses)
                    }
                    let stream = try EndlessStream(site, at: group.addresses, seed: seed)
                    _ = try await stream.child.output.line(10)
                    var serving = 0
                    var times: [Duration] = []
                    for _ in 0..<count {
                        let marks = group.marks
                        let said = stream.child.output.count
                        let former = try await stream.epoch(said - 1)
                        let killed = group.members[serving]
                        killed.child.signal(SIGKILL)
                        let begun = ContinuousClock.now
                        _ = try await stream.child.output.first(from: said) { line in
                            try object(line)[key: "epoch"]?.number ?? 0 > former
                        }
                        times.append(ContinuousClock.now - begun)
                        let others = [0, 1, 2].filter { $0 != serving }
                        let next = try await group.next("ready", of: others, behind: marks)
                        group.members[serving] = try await site.standby(log: place, at: killed)
                        serving = next
                    }
                    let expectation = try await stream.finish()
                    print(Self.summary(times, of: "kill -9"))
                    try await site.expectOneHistory(
                        of: [expectation], at: group.addresses, in: names, within: .seconds(300))
                }
            }
        }

        @Test func `the service is handed over again and again, and nothing is lost or doubled`()
            async throws
        {
            let count =
                ProcessInfo.processInfo.environment[Self.countName].flatMap { Int($0) } ?? 3
            try await withSeed { seed in
                try await withSite { site in
                    let place = try EtcdCluster.shared.get()
                        .address("conflux/\(UUID().uuidString)")
                    let group = try await site.sequencers(2, log: place)
                    let names = ["w1", "w2"]
                    for name in names {
                        _ = try await site.worker(
                            name, of: group.members[0], at: group.addresses)
                    }
                    let stream = try EndlessStream(site, at: group.addresses, seed: seed)
                    _ = try await stream.child.output.line(10)
                    var times: [Duration] = []
                    for round in 0..<count {
                        try await site.untilStandsBy(
                            group.members[(round + 1) % 2].address, at: group.addresses)
                        let said = stream.child.output.count
                        let former = try await stream.epoch(said - 1)
                        let outcome = try await site.run(
                            "handover", "--json", "--connect", group.addresses)
                        #expect(outcome.end == .exited(0), "\(outcome.message)")
                        _ = try await stream.child.output.first(from: said) { line in
                            try object(line)[key: "epoch"]?.number ?? 0 > former
                        }
                        times.append(stream.longestPause(from: said))
                    }
                    let expectation = try await stream.finish()
                    print(Self.summary(times, of: "handover"))
                    try await site.expectOneHistory(
                        of: [expectation], at: group.addresses, in: names, within: .seconds(300))
                }
            }
        }

        private static func summary(_ times: [Duration], of what: String) -> String {
            let sorted = times.map { Int($0 / .milliseconds(1)) }.sorted()
            func percentile(_ share: Double) -> Int {
                sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
            }
            return """
                takeovers: \(what): \(sorted.count), without a receipt for p50 \(percentile(0.5)) ms, p99 \
                \(percentile(0.99)) ms, at most \(sorted[sorted.count - 1]) ms
                """
        }
    }
}

/// A dispatch that gets its next action with each receipt.
final class EndlessStream: Sendable {
    let child: Child
    private let site: Site
    private let path: String
    private struct State {
        var generator: ActionGenerator
        var lines: [String] = []
        /// The time at which each receipt arrived.
        var arrivals: [ContinuousClock.Instant] = []
        var isEnding = false
    }
    private let state: Mutex<State>

    init(_ site: Site, at address: String, seed: UInt64) throws {
        self.site = site
        path = site.path("endless.ndjson")
        child = try site.start(
            ["dispatch", "document/*", "-", "--json", "--connect", address, "--timeout", "60s"],
            input: .pipe)
        state = Mutex(State(generator: ActionGenerator(seed: seed)))
        for _ in 0..<2 { feed() }
        Task { [self] in
            var index = 0
            while (try? await child.output.line(index)) ?? nil != nil {
                index += 1
                let now = ContinuousClock.now
                state.withLock { $0.arrivals.append(now) }
                feed()
            }
        }
    }

    private func feed() {
        state.withLock { state in
            guard !state.isEnding else { return }
            let line = state.generator.next()
            state.lines.append(line)
            child.feed([line])
        }
    }

    /// The epoch of a line's receipt.
    func epoch(_ index: Int) async throws -> UInt64 {
        guard let line = try await child.output.line(index) else { throw Failure("it has ended") }
        return try #require(try object(line)[key: "epoch"]?.number)
    }

    /// The longest time without a receipt, starting at a line.
    func longestPause(from index: Int) -> Duration {
        let arrivals = state.withLock { Array($0.arrivals.dropFirst(max(0, index - 1))) }
        return zip(arrivals, arrivals.dropFirst()).map { $1 - $0 }.max() ?? .zero
    }

    func finish() async throws -> sending StreamExpectation {
        state.withLock { $0.isEnding = true }
        child.endInput()
        let outcome = try await Tool.outcome(of: child, within: .seconds(60))
        #expect(outcome.end == .exited(0), "\(outcome.message)")
        let lines = state.withLock { $0.lines }
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: URL(filePath: path))
        return try StreamExpectation("endless", actions: path, results: outcome.output)
    }
}
