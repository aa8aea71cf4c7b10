import Conflux
import EtcdCluster
import Foundation
import Spawning
import Testing

extension ProcessTests {
    /// Several sequencers, and an etcd that has lost data or its majority.
    @Suite(.serialized, .enabled(if: EtcdCluster.isInstalled)) struct EtcdTroubleTests {
        @Test func `a sequencer ends when the log on etcd is damaged, and reports the damage`()
            async throws
        {
            try await withSite { site in
                let cluster = try EtcdCluster.shared.get()
                let prefix = "conflux/\(UUID().uuidString)"
                let place = cluster.address(prefix)
                let first = try await site.sequencer(log: place)
                _ = try await site.worker("w1", of: first)
                let last = try await site.dispatch("increment", to: "counter", at: first.address)
                let key = "/\(prefix)/commits/" + String(format: "%016lx", last)
                #expect(try cluster.control(["get", key, "--keys-only"]).contains(key))
                try cluster.control(["put", key, "something else"])

                // A standby reports the damage, and continues: the serving sequencer does not need the entry.
                let second = try site.start([
                    "sequencer", "--json", "--bind", "tcp://127.0.0.1:0", "--log", place,
                ])
                let report = try await second.output.first { line in
                    try object(line)[key: "event"]?.string == "logFailed"
                }.line
                #expect(report.contains("not those that were written"), "\(report)")
                _ = try await site.dispatch("increment", to: "counter", at: first.address)
                first.child.signal(SIGKILL)
                #expect(try await second.end() == .exited(74))
                let errors = try await second.errors.all()
                #expect(errors.contains { $0.contains("\(last)") }, "\(errors)")
            }
        }

        @Test func `a sequencer ends when it finds keys that belong to no log`() async throws {
            try await withSite { site in
                let cluster = try EtcdCluster.shared.get()
                let prefix = "conflux/\(UUID().uuidString)"
                let place = cluster.address(prefix)
                let first = try await site.sequencer(log: place)
                let second = try await site.standby(log: place)
                try cluster.control(["put", "/\(prefix)/end", "something else"])
                #expect(try await second.child.end() == .exited(74))
                first.child.signal(SIGTERM)
                _ = try await first.child.end()
            }
        }

        /// It would wait for its own silence otherwise.
        @Test func `a sequencer whose log failed does not wait if no other has claimed it`()
            async throws
        {
            try await withSite { site in
                var options = EtcdCluster.Options()
                options.memberCount = 1
                let cluster = try EtcdCluster(options)
                let sequencer = try await site.sequencer(log: cluster.address("conflux"))
                let mark = sequencer.child.output.count
                cluster.signal(SIGSTOP, 0)
                _ = try await sequencer.child.output.first(from: mark) { line in
                    try object(line)[key: "event"]?.string == "logFailed"
                }
                cluster.signal(SIGCONT, 0)
                let next = try await sequencer.child.output.first(from: mark) { line in
                    ["ready", "standby"].contains(try object(line)[key: "event"]?.string)
                }.line
                #expect(try object(next)[key: "event"]?.string == "ready", "\(next)")
            }
        }

        @Test func `without a majority of etcd there are no receipts, and later nothing is lost`()
            async throws
        {
            try await withSeed { seed in
                try await withSite { site in
                    let cluster = try EtcdCluster()
                    let group = try await site.sequencers(2, log: cluster.address("conflux"))
                    let names = ["w1", "w2"]
                    for name in names {
                        _ = try await site.worker(name, of: group.members[0], at: group.addresses)
                    }
                    let stream = try EndlessStream(site, at: group.addresses, seed: seed)
                    _ = try await stream.child.output.line(10)
                    for index in [0, 1] { cluster.signal(SIGKILL, index) }
                    // The sequencer that serves reports the failure.
                    _ = try await group.next("logFailed", of: [0, 1], behind: group.marks)
                    for index in [0, 1] { try cluster.start(index) }
                    let said = stream.child.output.count
                    _ = try await stream.child.output.line(said + 10)
                    let expectation = try await stream.finish()
                    try await site.expectOneHistory(
                        of: [expectation], at: group.addresses, in: names)
                }
            }
        }
    }
}
