import Conflux
import EtcdCluster
import Foundation
import Testing

/// Several sequencers that share a log.
struct SequencerGroup {
    let site: Site
    var members: [RunningSequencer]

    /// All addresses, in the form that `--connect` takes.
    var addresses: String { members.map(\.address).joined(separator: ",") }

    /// Waits until one of the sequencers prints an event after its mark.
    ///
    /// - Returns: The index of that sequencer.
    func next(
        _ event: String, of indices: [Int], behind marks: [Int]
    ) async throws -> Int {
        let first = OneTime<Result<Int, any Error>>()
        for index in indices {
            let lines = members[index].child.output
            // Nothing waits for the sequencers that don't print such an event.
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

    /// The number of lines that each has printed.
    var marks: [Int] { members.map { $0.child.output.count } }
}

extension Site {
    /// Starts sequencers on one log. The first one serves, and the others stand by.
    func sequencers(_ count: Int, log place: String) async throws -> SequencerGroup {
        var group = SequencerGroup(site: self, members: [try await sequencer(log: place)])
        for _ in 1..<count { group.members.append(try await standby(log: place)) }
        return group
    }

    /// Starts a sequencer and waits until it stands by. It has free ports of a host, or the ports of an earlier one.
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

/// Runs streams of actions while sequencers and workers are disturbed. Then each action must be in the log exactly
/// once and in order, and the workers must have what results from it.
///
/// - Parameters:
///   - start: Starts the sequencers.
///   - disturb: Makes the disturbance. It replaces the processes that it restarts by the new ones.
/// - Throws: What `start` and `disturb` throw, or a failure of the streams or of a process.
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
