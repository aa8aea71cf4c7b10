import Conflux
import EtcdCluster
import Foundation
import Testing

extension ProcessTests {
    /// One of several sequencers with a log on etcd is killed, stopped or cut off.
    @Suite(.serialized, .enabled(if: EtcdCluster.isInstalled)) struct FailoverTests {
        private func address() throws -> String {
            try EtcdCluster.shared.get().address("conflux/\(UUID().uuidString)")
        }

        /// Runs three sequencers under load, and disturbs them.
        private func disturb(
            _ body: (SequencerGroup) async throws -> Void
        ) async throws {
            let place = try address()
            try await expectOneHistory(of: { try await $0.sequencers(3, log: place) }) {
                group, _ in try await body(group)
            }
        }

        @Test
        func `when the serving sequencer is killed, another takes over and nothing is lost`()
            async throws
        {
            try await disturb { group in
                let marks = group.marks
                group.members[0].child.signal(SIGKILL)
                let second = try await group.next("ready", of: [1, 2], behind: marks)
                // And once more, so that the last one serves.
                let rest = second == 1 ? 2 : 1
                group.members[second].child.signal(SIGKILL)
                _ = try await group.next("ready", of: [rest], behind: marks)
            }
        }

        @Test
        func `a sequencer that was stopped for long does not continue to serve, and stands by`()
            async throws
        {
            try await disturb { group in
                let marks = group.marks
                group.members[0].child.signal(SIGSTOP)
                let second = try await group.next("ready", of: [1, 2], behind: marks)
                group.members[0].child.signal(SIGCONT)
                _ = try await group.next("standby", of: [0], behind: marks)
                // The stopped sequencer can take over again.
                let third = group.marks
                group.members[second].child.signal(SIGKILL)
                _ = try await group.next(
                    "ready", of: [0, 3 - second], behind: third)
            }
        }

        @Test func `a sequencer that is asked to stop names its successor`() async throws {
            try await disturb { group in
                let marks = group.marks
                group.members[0].child.signal(SIGTERM)
                _ = try await group.next("ready", of: [1, 2], behind: marks)
                #expect(try await group.members[0].child.end() == .exited(0))
            }
        }

        #if os(Linux)
            @Test func `a sequencer cut off from etcd leaves its nodes to another one`()
                async throws
            {
                try await withSite { site in
                    var options = EtcdCluster.Options()
                    options.memberCount = 1
                    let cluster = try EtcdCluster(options)
                    let proxy = try Proxy(before: "tcp://\(cluster.endpoints[0])")
                    let way = proxy.address.dropFirst("tcp://".count)
                    let first = try await site.sequencer(log: "etcd://\(way)/conflux")
                    let second = try await site.standby(log: cluster.address("conflux"))
                    let group = SequencerGroup(site: site, members: [first, second])
                    _ = try await site.worker("w1", of: first, at: group.addresses)
                    let before = try await site.dispatch(
                        "increment", to: "counter", at: group.addresses)
                    let marks = group.marks
                    // The connections stay open, but nothing passes.
                    proxy.delay(.seconds(20))
                    _ = try await group.next("ready", of: [1], behind: marks)
                    _ = try await group.next("logFailed", of: [0], behind: marks)
                    let after = try await site.dispatch(
                        "increment", to: "counter", at: group.addresses)
                    #expect(after > before)
                    let sightings = try await site.sightings(
                        of: "counter", at: group.addresses, in: ["w1"], from: after)
                    #expect(sightings.map(\.state) == [#"{"count":2}"#])
                    proxy.delay(.zero)
                    proxy.cut()
                    _ = try await group.next("standby", of: [0], behind: marks)
                }
            }
        #endif
    }
}
