import Conflux
import Testing

/// A sequencer and two workers that must not be affected by what others do.
struct Witness: Sendable {
    let site: Site
    let sequencer: RunningSequencer
    let workers: [RunningWorker]

    var address: String { sequencer.address }

    /// The options with which a command reaches the sequencer.
    var options: [String] { ["--json", "--connect", address] }

    /// Runs a command against the sequencer.
    func run(_ arguments: String..., input: Child.Input = .nothing) async throws -> Tool.Outcome {
        try await Tool.outcome(of: try site.start(arguments + options, input: input))
    }

    /// Expects that the same processes still do their work, in the same sessions.
    func expectUnharmed(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        for child in [sequencer.child] + workers.map(\.child) {
            #expect(child.isRunning, "\(child.report)", sourceLocation: sourceLocation)
        }
        let nodes = try await site.liveNodes(at: address)
        for worker in workers {
            #expect(
                nodes[worker.name] == worker.incarnation, "\(worker.child.report)",
                sourceLocation: sourceLocation)
        }
        let sequence = try await site.dispatch("increment", to: "counter", at: address)
        let sightings = try await site.sightings(
            of: "counter", at: address, in: workers.map(\.name), from: sequence)
        #expect(Set(sightings.map(\.state)).count == 1, sourceLocation: sourceLocation)
        for sighting in sightings {
            #expect(sighting.sequence == sequence, sourceLocation: sourceLocation)
        }
    }
}

/// Runs a test's body beside a sequencer and two workers, and expects that they are unharmed.
func withWitness(
    data: String? = nil, _ body: (Witness) async throws -> Void,
    sourceLocation: SourceLocation = #_sourceLocation
) async throws {
    try await withSite { site in
        let sequencer = try await site.sequencer(data: data)
        let workers = [
            try await site.worker("alpha", of: sequencer),
            try await site.worker("beta", of: sequencer),
        ]
        let witness = Witness(site: site, sequencer: sequencer, workers: workers)
        try await body(witness)
        try await witness.expectUnharmed(sourceLocation: sourceLocation)
    }
}
