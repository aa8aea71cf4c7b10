import Conflux
import EtcdCluster
import Foundation
import Testing

extension ProcessTests {
    /// Sequencers whose log is on etcd.
    @Suite(.serialized, .enabled(if: EtcdCluster.isInstalled)) struct EtcdTests {
        private func address() throws -> String {
            try EtcdCluster.shared.get().address("conflux/\(UUID().uuidString)")
        }

        @Test func `a restarted sequencer has all entries, and reports where its log is`()
            async throws
        {
            try await withSite { site in
                let place = try address()
                let first = try await site.sequencer(log: place)
                #expect(first.ready[key: "place"]?.string == place)
                _ = try await site.worker("alpha", of: first)
                let sequence = try await site.dispatch(
                    #"{"add":{"amount":5}}"#, to: "counter", at: first.address)
                first.child.signal(SIGTERM)
                #expect(try await first.child.end() == .exited(0))

                let second = try await site.sequencer(log: place, at: first)
                #expect(second.ready[key: "log"] == first.ready[key: "log"])
                let last = try #require(second.ready[key: "last"]?.number)
                #expect(last >= sequence)
                let sightings = try await site.sightings(
                    of: "counter", at: second.address, in: ["alpha"], from: sequence)
                #expect(sightings.map(\.state) == [#"{"count":5}"#])
                let status = try await site.run("status", "--connect", second.address)
                let id = try #require(second.ready[key: "log"]?.string)
                #expect(status.output.contains { $0.contains(id) }, "\(status.output)")
            }
        }

        @Test func `while members of etcd and the sequencer are killed nothing is lost or doubled`()
            async throws
        {
            try await withSeed { seed in
                try await withSite { site in
                    let cluster = try EtcdCluster()
                    let place = cluster.address("conflux")
                    let first = try await site.sequencer(log: place)
                    let names = ["w1", "w2"]
                    for name in names { _ = try await site.worker(name, of: first) }
                    let streams = try await startStreams(
                        site, first.address, lineCount: 600, seed: seed)
                    for stream in streams { _ = try await stream.child.output.line(50) }
                    let victim = try cluster.leader()
                    cluster.signal(SIGKILL, victim)
                    for stream in streams { _ = try await stream.child.output.line(150) }
                    first.child.signal(SIGKILL)
                    #expect(try await first.child.end() == .killed(SIGKILL))
                    let second = try await site.sequencer(log: place, at: first)
                    try cluster.start(victim)
                    for stream in streams { stream.finish() }
                    let expectations = try await outcomes(of: streams)
                    try await site.expectOneHistory(
                        of: expectations, at: second.address, in: names)
                }
            }
        }

        @Test func `without a majority a sequencer says so, and serves again once there is one`()
            async throws
        {
            try await withSite { site in
                let cluster = try EtcdCluster()
                let sequencer = try await site.sequencer(log: cluster.address("conflux"))
                _ = try await site.worker("alpha", of: sequencer)
                for index in [0, 1] { cluster.signal(SIGKILL, index) }
                let dispatching = try site.start([
                    "dispatch", "counter/*", "increment", "--timeout", "60s", "--connect",
                    sequencer.address,
                ])
                _ = try await sequencer.child.output.first { line in
                    let event = try object(line)
                    return event[key: "event"] == "logFailed"
                        && event[key: "message"]?.string?.contains("a majority") == true
                }
                for index in [0, 1] { try cluster.start(index) }
                _ = try await dispatching.end()
                // etcd may still fail a few times until it has recovered.
                var dispatchCount: UInt64 = 1
                var outcome: Tool.Outcome
                let deadline = ContinuousClock.now + .seconds(60)
                repeat {
                    outcome = try await site.run(
                        "dispatch", "counter/*", "increment", "--json", "--connect",
                        sequencer.address)
                    dispatchCount += 1
                } while outcome.end == .exited(74) && ContinuousClock.now < deadline
                #expect(outcome.end == .exited(0), "\(outcome.message)")
                let receipt = try object(try #require(outcome.output.first))
                let sightings = try await site.sightings(
                    of: "counter", at: sequencer.address, in: ["alpha"],
                    from: try #require(receipt[key: "sequence"]?.number))
                // Earlier dispatches may have timed out before they were admitted. Each was committed at most once.
                let states = (1...dispatchCount).map { #"{"count":\#($0)}"# }
                #expect(sightings.allSatisfy { states.contains($0.state) }, "\(sightings)")
                // Each failure is an event, and nothing else.
                let errors = sequencer.child.errors.soFar
                #expect(errors.isEmpty, "\(errors)")
            }
        }

        @Test func `an unusable address ends the command with advice`() async throws {
            try await withSite { site in
                let silent = try await site.run(
                    "sequencer", "--bind", "tcp://127.0.0.1:0", "--log",
                    "etcd://127.0.0.1:1/conflux")
                #expect(silent.end == .exited(73))
                #expect(silent.message.contains("127.0.0.1:1"), "\(silent.message)")
                for arguments in [
                    ["--log", "etcd://127.0.0.1"], ["--log", "http://127.0.0.1/conflux"],
                    ["--log", "etcd://127.0.0.1/conflux", "--log-ca", "ca.pem"],
                    ["--log", "etcd://127.0.0.1/conflux", "--memory"],
                ] {
                    let child = try site.start(["sequencer"] + arguments)
                    let outcome = try await Tool.outcome(of: child)
                    #expect(outcome.end == .exited(64), "\(arguments): \(outcome.message)")
                }
                let credentials = try await site.run(
                    "sequencer", "--log", "etcd://127.0.0.1/conflux", "--log-user",
                    site.path("absent"))
                #expect(credentials.end == .exited(66), "\(credentials.message)")
            }
        }
    }
}
