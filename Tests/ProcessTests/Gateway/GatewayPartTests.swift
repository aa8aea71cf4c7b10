import CZeroMQ
import Conflux
import Spawning
import Testing

extension ProcessTests {
    /// A gateway that publishes parts of its stores at addresses of their own, for keys that may observe these alone.
    struct GatewayPartTests {
        private static let (all, documents, counter) = ("*/*", "document/*", "counter/shared")
        private static let publishing = [
            "document/*=tcp://127.0.0.1:0", "counter=tcp://127.0.0.1:0", "tcp://127.0.0.1:0",
        ]
        private static let rights = [
            "reader": "observe=document/*", "writer": "observe=counter", "auditor": "observe",
        ]

        /// A subscriber to everything at an address.
        private func subscriber(
            _ name: String, at pattern: String, of gateway: RunningGateway, _ site: Site
        ) throws -> LibraryPeer {
            try LibraryPeer(
                ZMQ_SUB, try #require(gateway.places[pattern]), keys: try site.keys(name),
                topics: [""])
        }

        /// Waits until a subscriber was denied.
        private func denied(
            _ name: String, at pattern: String, of gateway: RunningGateway, _ site: Site
        ) async throws {
            _ = try await site.event("subscriberDenied", of: gateway.child) {
                $0[key: "name"]?.string == name
                    && $0[key: "address"]?.string == gateway.places[pattern]
            }
        }

        /// Changes both stores.
        ///
        /// - Returns: The numbers of the changes.
        private func change(
            _ site: Site, _ sequencer: RunningSequencer
        ) async throws -> (counter: UInt64, document: UInt64) {
            let counter = try await site.dispatch(
                "increment", to: "counter", at: sequencer.address)
            let document = try await site.dispatch(
                #"{"set":{"at":"/theme","value":"dark"}}"#, to: "document/prefs",
                at: sequencer.address)
            return (counter, document)
        }

        /// Waits for the message that has a change, or a state with it.
        ///
        /// - Returns: The stores of the messages until then.
        private func stores(
            until sequence: UInt64, _ peer: LibraryPeer
        ) async throws -> Set<String> {
            var stores: Set<String> = []
            while true {
                let news = try await peer.news()
                stores.insert(news.head[key: "store"]?.string ?? "")
                if news.sequence >= sequence { return stores }
            }
        }

        private func expectSilence(_ peers: [LibraryPeer]) async {
            for peer in peers {
                await #expect(throws: Failure.self) {
                    _ = try await peer.news(within: .milliseconds(300))
                }
            }
        }

        @Test func `a key subscribes where it may observe all stores, and hears nothing elsewhere`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(
                    of: sequencer, admitting: Self.rights, publishing: Self.publishing)
                #expect(Set(gateway.places.keys) == [Self.all, Self.documents, Self.counter])
                let reader = try subscriber("reader", at: Self.documents, of: gateway, site)
                let writer = try subscriber("writer", at: Self.counter, of: gateway, site)
                for peer in [reader, writer] { #expect(try await peer.news().kind == "state") }
                var outsiders: [LibraryPeer] = []
                for (name, pattern) in [
                    ("reader", Self.counter), ("reader", Self.all), ("writer", Self.documents),
                    ("writer", Self.all),
                ] {
                    outsiders.append(try subscriber(name, at: pattern, of: gateway, site))
                    try await denied(name, at: pattern, of: gateway, site)
                }
                let auditors = try [Self.documents, Self.counter, Self.all].map {
                    try subscriber("auditor", at: $0, of: gateway, site)
                }
                for auditor in auditors { #expect(try await auditor.news().kind == "state") }
                let (counted, set) = try await change(site, sequencer)
                #expect(try await stores(until: set, reader) == ["document/prefs"])
                #expect(try await stores(until: counted, writer) == ["counter/shared"])
                #expect(try await stores(until: set, auditors[0]) == ["document/prefs"])
                #expect(try await stores(until: counted, auditors[1]) == ["counter/shared"])
                #expect(
                    try await stores(until: set, auditors[2])
                        == ["counter/shared", "document/prefs"])
                await expectSilence(outsiders)
            }
        }

        @Test func `a key that loses its right at one address and gets it at another follows it`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(
                    of: sequencer, admitting: Self.rights, publishing: Self.publishing)
                let former = try subscriber("reader", at: Self.documents, of: gateway, site)
                let auditor = try subscriber("auditor", at: Self.all, of: gateway, site)
                for peer in [former, auditor] { #expect(try await peer.news().kind == "state") }
                try await site.reload(
                    ["reader": "observe=counter", "auditor": "observe"], at: gateway)
                try await denied("reader", at: Self.documents, of: gateway, site)
                let reader = try subscriber("reader", at: Self.counter, of: gateway, site)
                #expect(try await reader.news().kind == "state")
                let (counted, set) = try await change(site, sequencer)
                #expect(try await stores(until: counted, reader) == ["counter/shared"])
                // The other one connects again by itself.
                _ = try await stores(until: set, auditor)
                await #expect(throws: Failure.self) {
                    while try await former.news(within: .milliseconds(500)).sequence < set {}
                    Issue.record("the key got news that it may not observe any more")
                }
            }
        }

        @Test func `without keys a pattern says what is published where`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let path = site.path("a=b")
                let gateway = try await site.gateway(
                    of: sequencer, publishing: ["counter=tcp://127.0.0.1:0", "ipc://\(path)"])
                #expect(gateway.places[Self.all] == "ipc://\(path)")
                let some = try LibraryPeer(
                    ZMQ_SUB, try #require(gateway.places[Self.counter]),
                    topics: ["document/prefs\0", ""])
                let refusal = try await some.news()
                #expect(refusal.kind == "error")
                let message = refusal.head[key: "message"]?.string ?? ""
                #expect(message.contains("counter") && !message.contains("prefs"))
                let all = try LibraryPeer(ZMQ_SUB, gateway.publish, topics: ["document/prefs\0"])
                #expect(try await all.news().kind == "state")
            }
        }

        @Test func `values of --publish that can't be meant end the gateway with advice`()
            async throws
        {
            try await withSite { site in
                let taken = "tcp://127.0.0.1:7410"
                let many = (0...64).map { "ipc://\(site.path("\($0)"))" }
                let cases: [([String], String)] = [
                    (["cart/*=tcp://127.0.0.1:0"], "add a store"),
                    (["document=tcp://127.0.0.1:0"], "document/prefs, counter/shared"),
                    ([taken, "counter=\(taken)"], "an address of its own"),
                    (["counter=\(taken)", "tcp://127.0.0.1:07410"], "an address of its own"),
                    (["=tcp://127.0.0.1:0"], "is not a pattern"),
                    (["Counter=tcp://127.0.0.1:0"], "is not a pattern"),
                    (["document/*,counter=tcp://127.0.0.1:0"], "several times"),
                    (["counter="], "is not an endpoint"),
                    (["counter=document/*=tcp://127.0.0.1:0"], "is not an endpoint"),
                    (["counter=tcp://127.0.0.1"], "the port is missing"),
                    (["counter=tcp://0.0.0.0:0"], "--insecure"), (many, "64 times at most"),
                ]
                for (values, words) in cases {
                    let outcome = try await Tool.outcome(
                        of: try site.start(
                            ["gateway", "--store", "document/prefs", "--store", "counter"]
                                + values.flatMap { ["--publish", $0] }))
                    #expect(outcome.end == .exited(64), "\(values): \(outcome.message)")
                    #expect(outcome.message.contains(words), "\(outcome.message)")
                }
                let both = try await site.run("gateway", "--publish", taken, "--ask", taken)
                #expect(both.end == .exited(64) && both.message.contains("an address of its own"))
            }
        }
    }
}
