import Conflux
import EtcdCluster
import Foundation
import Testing

/// Several sequencers of one log.
struct SequencerGroup {
    let site: Site
    var members: [RunningSequencer]

    /// All addresses, as `--connect` takes them.
    var addresses: String { members.map(\.address).joined(separator: ",") }

    /// Waits until one of them prints an event, behind what it has printed by now.
    ///
    /// - Returns: Which one.
    func next(
        _ event: String, of indices: [Int], behind marks: [Int]
    ) async throws -> Int {
        let first = OneTime<Result<Int, any Error>>()
        for index in indices {
            let lines = members[index].child.output
            // Whoever prints nothing of the kind is not waited for.
            Task {
                do {
                    _ = try await lines.first(from: marks[index]) { line in
                        try object(line)[key: "event"]?.string == event
                    }
                    first.give(.success(index))
                } catch {
                    first.give(.failure(error))
                }
            }
        }
        return try await first.value().get()
    }

    /// How much each has printed.
    var marks: [Int] { members.map { $0.child.output.count } }
}

extension Site {
    /// Starts sequencers on one log: the first one serves, the others stand by.
    func sequencers(_ count: Int, log place: String) async throws -> SequencerGroup {
        var group = SequencerGroup(site: self, members: [try await sequencer(log: place)])
        for _ in 1..<count { group.members.append(try await standby(log: place)) }
        return group
    }

    /// Starts a sequencer and waits until it stands by: on free ports of a host, or on those that another one had.
    func standby(
        log place: String, at former: RunningSequencer? = nil, host: String = "127.0.0.1",
        options: [String] = []
    ) async throws -> RunningSequencer {
        let bind = former?.address ?? "tcp://\(host):0"
        let feed = former.map { ["--feed", $0.feed] } ?? []
        let child = try start(
            ["sequencer", "--json", "--bind", bind, "--log", place] + feed + options)
        let line = try await child.output.first { line in
            try object(line)[key: "event"]?.string == "standby"
        }.line
        let event = try object(line)
        return RunningSequencer(
            child: child, address: try #require(event[key: "address"]?.string),
            feed: try #require(event[key: "feed"]?.string), ready: event)
    }
}

/// Streams of actions pass while something is done to sequencers and workers; then each action is in the log once and
/// in its order, and the workers have what follows.
///
/// - Parameters:
///   - start: Starts the sequencers.
///   - disturb: What is done. It puts those that it started anew in the place of those that were.
/// - Throws: What `start` and `disturb` throw, and a failure of the streams or of a process.
func expectOneHistory(
    of start: (Site) async throws -> SequencerGroup,
    while disturb: (inout SequencerGroup, inout [RunningWorker]) async throws -> Void
) async throws {
    try await withSeed { seed in
        try await withSite { site in
            var group = try await start(site)
            var workers: [RunningWorker] = []
            for name in ["w1", "w2"] {
                workers.append(
                    try await site.worker(name, of: group.members[0], at: group.addresses))
            }
            let streams = try await startStreams(site, group.addresses, lineCount: 600, seed: seed)
            for stream in streams { _ = try await stream.child.output.line(150) }
            try await disturb(&group, &workers)
            for stream in streams { stream.finish() }
            let expectations = try await outcomes(of: streams)
            try await site.expectOneHistory(
                of: expectations, at: group.addresses, in: workers.map(\.name))
        }
    }
}
