import Conflux
import EtcdCluster
import Foundation
import Spawning
import Testing

extension ProcessTests {
    /// Several sequencers with a log on etcd that work without faults.
    @Suite(.serialized, .enabled(if: EtcdCluster.isInstalled)) struct HandoverTests {
        private func address() throws -> String {
            try EtcdCluster.shared.get().address("conflux/\(UUID().uuidString)")
        }

        @Test func `a handover under load makes the named sequencer serve`() async throws {
            try await withSeed { seed in
                try await withSite { site in
                    let group = try await site.sequencers(3, log: try address())
                    let names = ["w1", "w2"]
                    for name in names {
                        _ = try await site.worker(
                            name, of: group.members[0], at: group.addresses)
                    }
                    let streams = try await startStreams(
                        site, group.addresses, lineCount: 600, seed: seed)
                    for stream in streams { _ = try await stream.child.output.line(100) }
                    for (index, next) in [(0, 2), (2, 1), (1, 0)] {
                        let marks = group.marks
                        let successor = group.members[next].address
                        // The serving sequencer learns of a standby a moment after it has begun to stand by.
                        try await site.untilStandsBy(successor, at: group.addresses)
                        let outcome = try await site.run(
                            "handover", "--json", "--connect", group.addresses, "--to", successor)
                        #expect(outcome.end == .exited(0), "\(outcome.message)")
                        let line = try object(try #require(outcome.output.first))
                        #expect(line[key: "to"]?.string == successor)
                        _ = try await group.next("handedOver", of: [index], behind: marks)
                        _ = try await group.next("ready", of: [next], behind: marks)
                        _ = try await group.next("standby", of: [index], behind: marks)
                    }
                    for stream in streams { stream.finish() }
                    let expectations = try await outcomes(of: streams)
                    try await site.expectOneHistory(
                        of: expectations, at: group.addresses, in: names)
                }
            }
        }

        @Test func `status shows which sequencer serves, which ones stand by, and how far each is`()
            async throws
        {
            try await withSite { site in
                let group = try await site.sequencers(2, log: try address())
                _ = try await site.worker("w1", of: group.members[0], at: group.addresses)
                let standby = group.members[1].address
                try await site.untilStandsBy(standby, at: group.addresses)
                // A standby answers the question, too.
                let status = try await site.status(at: standby)
                let places = try #require(status[key: "sequencers"]?.array)
                #expect(
                    places.map { $0[key: "address"]?.string }
                        == [group.members[0].address, standby])
                #expect(places.map { $0[key: "serving"] } == [.bool(true), .bool(false)])
                #expect(places[0][key: "last"] == status[key: "last"])
                let text = try await site.run("status", "--connect", standby)
                #expect(
                    text.output.contains { $0.hasPrefix(standby) && $0.contains("standby") },
                    "\(text.output)")
            }
        }

        @Test func `a command finds the serving sequencer behind a dead address and a redirect`()
            async throws
        {
            try await withSite { site in
                let group = try await site.sequencers(2, log: try address())
                _ = try await site.worker("w1", of: group.members[0])
                let dead = "tcp://127.0.0.1:1"
                for place in [
                    "\(dead),\(group.members[1].address)", group.members[1].address,
                    "\(dead),\(group.members[0].address)",
                ] {
                    let sequence = try await site.dispatch("increment", to: "counter", at: place)
                    #expect(sequence > 0)
                }
                let sightings = try await site.sightings(
                    of: "counter", at: group.members[1].address, in: ["w1"], from: 1)
                #expect(sightings.map(\.state) == [#"{"count":3}"#])
            }
        }

        @Test func `nodes with keys are redirected, and follow a handover`() async throws {
            try await withSite { site in
                let keyed = try await KeyedSite(
                    site, ["all": "administer host dispatch observe"])
                let place = try address()
                let (secret, authorized) = (site.path("sequencer.secret"), site.path("authorized"))
                let first = try await site.sequencer(
                    log: place, "--curve-secret", secret, "--authorized", authorized)
                let second = try await site.standby(
                    log: place, options: ["--curve-secret", secret, "--authorized", authorized])
                func run(_ words: String...) async throws -> Tool.Outcome {
                    try await Tool.outcome(
                        of: try site.start(
                            words + ["--connect", second.address] + keyed.options("all")),
                        within: .seconds(60))
                }
                _ = try await site.worker(
                    "w1", of: second, stores: ["counter"], options: keyed.options("all"))
                let before = try await run("dispatch", "counter", "increment", "--wait", "applied")
                #expect(before.end == .exited(0), "\(before.message)")
                // The serving sequencer learns of a standby a moment after it has begun to stand by.
                let deadline = ContinuousClock.now + .seconds(30)
                while ContinuousClock.now < deadline,
                    try await !run("status", "--json").output.contains(where: {
                        $0.contains(#""address":"\#(second.address)","last""#)
                    })
                {}
                let marks = [first.child.output.count, second.child.output.count]
                let handover = try await run("handover", "--json")
                #expect(handover.end == .exited(0), "\(handover.message)")
                let group = SequencerGroup(site: site, members: [first, second])
                _ = try await group.next("ready", of: [1], behind: marks)
                let after = try await run("dispatch", "counter", "increment", "--wait", "applied")
                #expect(after.end == .exited(0), "\(after.message)")
                let seen = try await run("observe", "counter", "--json")
                #expect(seen.output.contains { $0.contains(#""count":2"#) }, "\(seen)")
            }
        }

        @Test func `without a standby a handover is refused`() async throws {
            try await withSite { site in
                let only = try await site.sequencer(log: try address())
                let outcome = try await site.run("handover", "--connect", only.address)
                #expect(outcome.end != .exited(0))
                #expect(outcome.message.contains("known to stand by"), "\(outcome.message)")
                let memory = try await site.sequencer()
                let second = try await site.run("handover", "--connect", memory.address)
                #expect(second.end == outcome.end)
            }
        }

        @Test func `an address that nodes can't connect to has to be replaced`() async throws {
            try await withSite { site in
                let outcome = try await site.run(
                    "sequencer", "--insecure", "--bind", "tcp://0.0.0.0:0", "--log", try address())
                #expect(outcome.end == .exited(64), "\(outcome.message)")
                #expect(outcome.message.contains("--advertise"), "\(outcome.message)")
            }
        }
    }
}

extension Site {
    /// Waits until the serving sequencer knows that another one stands by.
    func untilStandsBy(_ address: String, at place: String) async throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while true {
            let places = try await status(at: place)[key: "sequencers"]?.array ?? []
            let isKnown = places.contains {
                $0[key: "address"]?.string == address && $0[key: "serving"] == .bool(false)
            }
            if isKnown { return }
            guard ContinuousClock.now < deadline else {
                throw Failure("\(address) is not known to stand by")
            }
        }
    }
}
