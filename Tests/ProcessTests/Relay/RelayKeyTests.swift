import CZeroMQ
import Conflux
import Foundation
import Spawning
import Testing

extension ProcessTests {
    /// Relays of a sequencer that admits only keys. A relay has the sequencer's own.
    struct RelayKeyTests {
        private func relay(_ site: KeyedSite, of feed: String? = nil) async throws -> RunningRelay {
            try await site.site.relay(
                of: feed ?? site.sequencer.feed,
                options: [
                    "--curve-secret", site.site.path("sequencer.secret"), "--authorized",
                    site.site.path("authorized"),
                ])
        }

        private func worker(
            _ key: String, _ site: KeyedSite, behind relay: RunningRelay, as name: String? = nil
        ) async throws -> RunningWorker {
            try await site.site.worker(
                name ?? key, of: site.sequencer, stores: ["counter"],
                options: ["--feed", relay.address] + site.options(key))
        }

        @Test
        func `keys that may observe everything have a relay, and others the sequencer itself`()
            async throws
        {
            try await withSite { plain in
                let site = try await KeyedSite(
                    plain, ["whole": "all", "part": "host=counter/* dispatch=counter/*"])
                // Relays of relays have the same key.
                let first = try await relay(site)
                let relay = try await relay(site, of: first.address)
                let whole = try await worker("whole", site, behind: relay)
                let part = try await worker("part", site, behind: relay)
                let denied = try await plain.event("subscriberDenied", of: relay.child)
                #expect(denied[key: "name"] == "part")
                let event = try await plain.event("feedFellBack", of: part.child)
                #expect(event[key: "to"]?.string == site.sequencer.feed)
                #expect(event[key: "message"]?.string?.contains("observe=*/*") == true)
                let outcome = try await site.run("whole", "dispatch", "counter", "increment")
                #expect(outcome.end == .exited(0))
                for name in ["whole", "part"] {
                    let child = try plain.start(
                        ["observe", "counter", "--follow", "--json", "--connect"]
                            + [site.sequencer.address] + site.options("whole"))
                    _ = try await child.output.first {
                        let sighting = try Sighting($0, of: "counter")
                        return sighting.node == name && sighting.state == #"{"count":1}"#
                    }
                    child.signal(SIGINT)
                    _ = try await child.end()
                }
                try await plain.expect(whole, toFollow: relay, falling: site.sequencer.feed)
            }
        }

        @Test
        func
            `a key that is removed loses its relay on SIGHUP, and a file that is wrong changes nothing`()
            async throws
        {
            try await withSite { plain in
                let site = try await KeyedSite(plain, ["whole": "all", "other": "all"])
                let relay = try await relay(site)
                _ = try await worker("whole", site, behind: relay)
                let other = try await worker("other", site, behind: relay)
                _ = try plain.write("nonsense", to: "authorized")
                relay.child.signal(SIGHUP)
                _ = try await relay.child.errors.first { $0.contains("stay authorised") }
                try site.authorize(["whole": "all", "other": "host=counter/*"])
                relay.child.signal(SIGHUP)
                _ = try await plain.event("authorized", of: relay.child)
                let event = try await plain.event("feedFellBack", of: other.child)
                #expect(event[key: "from"]?.string == relay.address)
                // It listens again, and goes on to admit the other one's key alone.
                let late = try await worker("other", site, behind: relay, as: "late")
                let denied = try await plain.event("subscriberDenied", of: relay.child)
                #expect(denied[key: "name"] == "other")
                _ = try await plain.event("feedFellBack", of: late.child)
            }
        }

        @Test func `a relay with another key than the sequencer's passes nothing on`() async throws
        {
            try await withSite { plain in
                let site = try await KeyedSite(plain, ["whole": "all"])
                let stranger = try plain.start([
                    "relay", "--json", "--bind", "tcp://127.0.0.1:0", "--feed",
                    site.sequencer.feed, "--curve-secret", plain.path("whole.secret"),
                    "--authorized", plain.path("authorized"),
                ])
                let trouble = try await plain.event("unreachable", of: stranger)
                #expect(trouble[key: "message"]?.string?.contains("does not admit") == true)
                // Nor does one without keys.
                let open = try plain.start([
                    "relay", "--json", "--bind", "tcp://127.0.0.1:0", "--feed", site.sequencer.feed,
                ])
                let mismatch = try await plain.event("unreachable", of: open)
                #expect(mismatch[key: "message"]?.string?.contains("encrypts") == true)
            }
        }
    }
}
