#if os(Linux)
    import Conflux
    import EtcdCluster
    import Foundation
    import Testing

    extension ProcessTests {
        /// Nodes that can reach only some of the sequencers that share a log on etcd.
        @Suite(.serialized, .enabled(if: EtcdCluster.isInstalled)) struct ReachTests {
            private func address() throws -> String {
                try EtcdCluster.shared.get().address("conflux/\(UUID().uuidString)")
            }

            /// A sequencer that has ended, for its free ports. Another one can use them to advertise another host.
            private func ports(_ site: Site) async throws -> RunningSequencer {
                let probe = try await site.sequencer()
                probe.child.signal(SIGTERM)
                #expect(try await probe.child.end() == .exited(0))
                return probe
            }

            @Test
            func `if nodes can't reach the serving sequencer, a handover from its machine helps`()
                async throws
            {
                try await withSite { site in
                    let place = try address()
                    let ports = try await ports(site)
                    let ways = [try Proxy(before: ports.address), try Proxy(before: ports.feed)]
                    let first = try await site.sequencer(
                        log: place, at: ports, "--advertise", ways[0].address)
                    let second = try await site.standby(log: place)
                    let addresses = "\(ways[0].address),\(second.address)"
                    let worker = try await site.worker("w1", of: first, at: addresses)
                    _ = try await site.dispatch("increment", to: "counter", at: addresses)
                    // The connections stay open, but nothing passes.
                    for way in ways { way.delay(.seconds(60)) }
                    _ = try await worker.child.output.first { line in
                        try object(line)[key: "event"] == "disconnected"
                    }
                    // It continues to serve, since others may reach it.
                    let direct = try await site.dispatch(
                        "increment", to: "counter", at: first.address)
                    let cut = try await site.run(
                        "dispatch", "counter", "increment", "--connect", addresses)
                    #expect(cut.end == .exited(69), "\(cut.message)")
                    #expect(
                        cut.message.contains("\(ways[0].address) but does not answer"),
                        "\(cut.message)")
                    try await site.untilStandsBy(second.address, at: first.address)
                    let marks = [first.child.output.count, second.child.output.count]
                    let handover = try await site.run("handover", "--connect", first.address)
                    #expect(handover.end == .exited(0), "\(handover.message)")
                    let group = SequencerGroup(site: site, members: [first, second])
                    _ = try await group.next("ready", of: [1], behind: marks)
                    let last = try await site.dispatch("increment", to: "counter", at: addresses)
                    #expect(last > direct)
                    let sightings = try await site.sightings(
                        of: "counter", at: second.address, in: ["w1"], from: last)
                    #expect(sightings.map(\.state) == [#"{"count":3}"#])
                    for way in ways {
                        way.delay(.zero)
                        way.cut()
                    }
                }
            }

            @Test(arguments: [false, true])
            func `a command that is sent to a dead sequencer waits for the takeover`(
                knowsBoth: Bool
            ) async throws {
                try await withSite { site in
                    let group = try await site.sequencers(2, log: try address())
                    let (first, second) = (group.members[0], group.members[1])
                    _ = try await site.worker("w1", of: first, at: group.addresses)
                    try await site.untilStandsBy(second.address, at: first.address)
                    first.child.signal(SIGKILL)
                    let outcome = try await site.run(
                        "dispatch", "counter", "increment", "--timeout", "60s", "--connect",
                        knowsBoth ? group.addresses : second.address)
                    #expect(outcome.end == .exited(0), "\(outcome.message)")
                }
            }

            @Test func `a serving sequencer whose advertised name has no address is named`()
                async throws
            {
                try await withSite { site in
                    let place = try address()
                    let ports = try await ports(site)
                    let name = "tcp://no-such-host.invalid:7400"
                    let first = try await site.sequencer(log: place, at: ports, "--advertise", name)
                    let second = try await site.standby(log: place)
                    try await site.untilStandsBy(second.address, at: first.address)
                    let begun = ContinuousClock.now
                    for command in [["dispatch", "counter", "increment"], ["worker"]] {
                        let child = try site.start(
                            command + ["--timeout", "2s", "--connect", second.address])
                        let outcome = try await Tool.outcome(of: child)
                        #expect(outcome.end == .exited(69), "\(outcome)")
                        #expect(outcome.message.contains(name), "\(outcome)")
                        #expect(outcome.message.contains("has no address"), "\(outcome)")
                    }
                    #expect(ContinuousClock.now - begun < .seconds(10))
                }
            }

            /// The words before a program that give it a hosts file in which only this name has addresses.
            private func naming(_ name: String, _ hosts: [String], _ site: Site) throws -> [String]
            {
                let lines = hosts.map { "\($0) \(name)\n" }.joined()
                let file = try site.write(lines, to: "hosts")
                return [
                    try #require(Deployment.program("unshare")), "--map-root-user", "--mount", "sh",
                    "-c", "mount --bind '\(file)' /etc/hosts && exec \"$@\"", "sh",
                ]
            }

            @Test func `a name that has the addresses of all sequencers finds the one that serves`()
                async throws
            {
                try await withSite { site in
                    let name = "sequencers.test"
                    let hosts = ["127.0.0.1", "127.0.0.3", "127.0.0.4"]
                    let prefix = try naming(name, hosts, site)
                    let trial = try await Tool.outcome(
                        of: try Tool.start(
                            Array(prefix.dropFirst()) + ["true"], program: prefix[0]))
                    guard trial.end == .exited(0) else {
                        print("a name with several addresses: this user may make no namespace")
                        return
                    }
                    let place = try address()
                    let ports = try await ports(site)
                    let port = try #require(ports.address.split(separator: ":").last)
                    let first = try await site.sequencer(log: place, at: ports)
                    var group = SequencerGroup(site: site, members: [first])
                    for host in hosts.dropFirst() {
                        let other = RunningSequencer(
                            child: ports.child, address: "tcp://\(host):\(port)",
                            feed: ports.feed.replacing(hosts[0], with: host), ready: ports.ready)
                        group.members.append(try await site.standby(log: place, at: other))
                    }
                    let named = ["--connect", "tcp://\(name):\(port)"]
                    func run(_ words: String...) async throws -> Tool.Outcome {
                        try await Tool.outcome(
                            of: try site.start(words + named, behind: prefix),
                            within: .seconds(60))
                    }
                    let worker = try site.start(
                        ["worker", "--json", "--name", "w1", "--store", "counter"] + named,
                        behind: prefix)
                    _ = try await worker.output.first { line in
                        try object(line)[key: "event"] == "ready"
                    }
                    for index in [0, 1] {
                        let done = try await run(
                            "dispatch", "counter", "increment", "--wait", "applied")
                        #expect(done.end == .exited(0), "\(done.message)")
                        let marks = group.marks
                        let serving = try #require(
                            try await run("status", "--json").output.first.map(object))
                        let places = try #require(serving[key: "sequencers"]?.array)
                        let address = places.first { $0[key: "serving"] == .bool(true) }?[
                            key: "address"]?.string
                        let server = try #require(
                            group.members.firstIndex { $0.address == address })
                        #expect(index > 0 || server == 0)
                        group.members[server].child.signal(SIGKILL)
                        let rest = [0, 1, 2].filter {
                            $0 != server && (index == 0 || $0 != 0)
                        }
                        _ = try await group.next("ready", of: rest, behind: marks)
                    }
                    let last = try await run(
                        "dispatch", "counter", "increment", "--wait", "applied")
                    #expect(last.end == .exited(0), "\(last.message)")
                    let seen = try await run("observe", "counter", "--json")
                    #expect(seen.output.contains { $0.contains(#""count":3"#) }, "\(seen)")
                }
            }
        }
    }
#endif
