#if os(Linux)
    import Conflux
    import EtcdCluster
    import Foundation
    import Testing

    extension ProcessTests {
        /// Machines that can reach only some of the others: the three of etcd, the sequencers', and the nodes'.
        @Suite(.serialized, .enabled(if: EtcdCluster.isInstalled)) struct PartitionTests {
            /// The machines, and what runs on them.
            private struct Division {
                static let etcd = ["10.0.0.11", "10.0.0.12", "10.0.0.13"]
                static let sequencers = ["10.0.0.21", "10.0.0.22", "10.0.0.23"]
                static let nodes = ["10.0.0.31", "10.0.0.32"]

                let site: Site
                let network: Network
                let cluster: EtcdCluster
                let group: SequencerGroup

                func on<Result>(_ host: String, _ body: () async throws -> Result) async throws
                    -> Result
                {
                    try await Site.$prefix.withValue(network.prefix(on: host), operation: body)
                }
            }

            /// Runs streams of actions on the first node's machine while the network is divided and joined again. Then
            /// each action must be in the log exactly once and in order, and the nodes must have what results from it.
            private func expectOneHistory(
                while divide: (Division) async throws -> Void
            ) async throws {
                let hosts = Division.etcd + Division.sequencers + Division.nodes
                guard let network = try await Network.make(of: hosts) else {
                    print("networks are not divided, since this user may not make any")
                    return
                }
                do {
                    try await withSeed { seed in
                        try await withSite { site in
                            try await run(site, network, seed: seed, divide)
                        }
                    }
                } catch {
                    try await network.remove()
                    throw error
                }
                try await network.remove()
            }

            private func run(
                _ site: Site, _ network: Network, seed: UInt64,
                _ divide: (Division) async throws -> Void
            ) async throws {
                var options = EtcdCluster.Options()
                options.machines = try Division.etcd.map { ($0, try network.prefix(on: $0)) }
                let cluster = try EtcdCluster(options)
                let place = cluster.address("conflux")
                var group = SequencerGroup(site: site, members: [])
                for host in Division.sequencers {
                    let prefix = try network.prefix(on: host)
                    let member = try await Site.$prefix.withValue(prefix) {
                        group.members.isEmpty
                            ? try await site.sequencer(log: place, host: host, "--insecure")
                            : try await site.standby(
                                log: place, host: host, options: ["--insecure"])
                    }
                    group.members.append(member)
                }
                defer { withExtendedLifetime(cluster) {} }
                let division = Division(
                    site: site, network: network, cluster: cluster, group: group)
                let names = ["w1", "w2"]
                for (name, host) in zip(names, Division.nodes) {
                    try await division.on(host) {
                        _ = try await site.worker(name, of: group.members[0], at: group.addresses)
                    }
                }
                try await division.on(Division.nodes[0]) {
                    let streams = try await startStreams(
                        site, group.addresses, lineCount: 600, seed: seed)
                    for stream in streams { _ = try await stream.child.output.line(150) }
                    try await divide(division)
                    for stream in streams { stream.finish() }
                    let expectations = try await outcomes(of: streams)
                    try await site.expectOneHistory(
                        of: expectations, at: group.addresses, in: names)
                }
            }

            @Test func `a sequencer cut off from etcd, but not from its nodes, stops serving`()
                async throws
            {
                try await expectOneHistory { division in
                    let (group, network) = (division.group, division.network)
                    let marks = group.marks
                    try await network.separate([Division.sequencers[0]], from: Division.etcd)
                    _ = try await group.next("ready", of: [1, 2], behind: marks)
                    _ = try await group.next("logFailed", of: [0], behind: marks)
                    _ = try await division.site.dispatch(
                        "increment", to: "counter", at: group.addresses)
                    try await network.join([Division.sequencers[0]], with: Division.etcd)
                    _ = try await group.next("standby", of: [0], behind: marks)
                }
            }

            @Test
            func `nodes cut off from a sequencer that reaches etcd continue after a handover`()
                async throws
            {
                try await expectOneHistory { division in
                    let (group, network) = (division.group, division.network)
                    try await division.site.untilStandsBy(
                        group.members[1].address, at: group.addresses)
                    let marks = group.marks
                    try await network.separate([Division.sequencers[0]], from: Division.nodes)
                    try await division.on(Division.sequencers[0]) {
                        let outcome = try await division.site.run(
                            "handover", "--connect", group.members[0].address)
                        #expect(outcome.end == .exited(0), "\(outcome.message)")
                    }
                    _ = try await group.next("ready", of: [1, 2], behind: marks)
                    _ = try await division.site.dispatch(
                        "increment", to: "counter", at: group.addresses)
                    try await network.join([Division.sequencers[0]], with: Division.nodes)
                }
            }

            @Test func `an isolated sequencer with the leader of etcd gives way to the majority`()
                async throws
            {
                try await expectOneHistory { division in
                    let (group, network) = (division.group, division.network)
                    try division.cluster.letLead(0)
                    let marks = group.marks
                    let alone = [Division.sequencers[0], Division.etcd[0], Division.nodes[1]]
                    let others =
                        Division.sequencers[1...] + Division.etcd[1...] + [Division.nodes[0]]
                    try await network.separate(alone, from: Array(others))
                    _ = try await group.next("ready", of: [1, 2], behind: marks)
                    _ = try await group.next("logFailed", of: [0], behind: marks)
                    _ = try await division.site.dispatch(
                        "increment", to: "counter", at: group.addresses)
                    try await network.join(alone, with: Array(others))
                    _ = try await group.next("standby", of: [0], behind: marks)
                }
            }
        }
    }
#endif
