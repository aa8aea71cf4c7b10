import Conflux
import EtcdCluster
import Foundation
import Testing

extension ProcessTests {
    /// The runbook's sections about lost members of etcd and about upgrades, under load.
    @Suite(.serialized, .enabled(if: EtcdCluster.isInstalled)) struct RecoveryTests {
        @Test func `a lost member of etcd is replaced under load, and the new one counts`()
            async throws
        {
            let cluster = try EtcdCluster()
            let place = cluster.address("conflux")
            try await expectOneHistory(of: { try await $0.sequencers(2, log: place) }) { _, _ in
                cluster.signal(SIGKILL, 2)
                try cluster.replace(2)
                // The new member and the remaining one are a majority.
                cluster.signal(SIGKILL, 1)
                try cluster.awaitHealth()
            }
        }

        @Test func `sequencers and workers are restarted one by one under load`() async throws {
            let place = try EtcdCluster.shared.get().address("conflux/\(UUID().uuidString)")
            try await expectOneHistory(
                of: { try await $0.sequencers(3, log: place) }
            ) { group, workers in
                let site = group.site
                // The standbys are restarted first. Then another one serves, and the last one can be restarted.
                for index in [1, 2, 0] {
                    let former = group.members[index]
                    if index == 0 {
                        try await site.untilStandsBy(
                            group.members[1].address, at: group.addresses)
                        let marks = group.marks
                        let handover = try await site.run("handover", "--connect", group.addresses)
                        #expect(handover.end == .exited(0), "\(handover.message)")
                        _ = try await group.next("ready", of: [1, 2], behind: marks)
                    }
                    former.child.signal(SIGTERM)
                    #expect(try await former.child.end() == .exited(0))
                    group.members[index] = try await site.standby(log: place, at: former)
                }
                for index in workers.indices {
                    let worker = workers[index]
                    worker.child.signal(SIGTERM)
                    #expect(try await worker.child.end() == .exited(0))
                    workers[index] = try await site.worker(
                        worker.name, of: group.members[0], at: group.addresses)
                }
            }
        }

        @Test func `an etcd that lost its majority permanently is restored from its own backup`()
            async throws
        {
            try await withSite { site in
                let cluster = try EtcdCluster()
                let place = cluster.address("conflux")
                let first = try await site.sequencer(log: place)
                let worker = try await site.worker("w1", of: first)
                _ = try await site.dispatch("increment", to: "counter", at: first.address)
                let saved = try cluster.save()
                let lost = try await site.dispatch(
                    "increment", to: "counter", at: first.address, "--wait", "applied")
                first.child.signal(SIGTERM)
                #expect(try await first.child.end() == .exited(0))
                for index in 0..<3 { cluster.signal(SIGKILL, index) }
                try cluster.restore(from: saved)

                let second = try await site.sequencer(log: place, at: first)
                #expect(second.ready[key: "log"] == first.ready[key: "log"])
                let last = try #require(second.ready[key: "last"]?.number)
                #expect(last < lost)
                _ = try await worker.child.output.first { line in
                    try object(line)[key: "event"] == "historyLost"
                }
                let next = try await site.dispatch(
                    "increment", to: "counter", at: second.address, "--wait", "applied")
                let sightings = try await site.sightings(
                    of: "counter", at: second.address, in: ["w1"], from: next)
                #expect(sightings.map(\.state) == [#"{"count":2}"#])
            }
        }
    }
}
