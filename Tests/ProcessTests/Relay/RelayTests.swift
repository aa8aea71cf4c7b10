import CZeroMQ
import Conflux
import Foundation
import Spawning
import Testing

extension ProcessTests {
    /// Relays between a sequencer and its nodes.
    struct RelayTests {
        @Test func `a node behind a relay gets everything, and falls back when it is killed`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let relay = try await site.relay(of: sequencer.feed)
                let worker = try await site.worker(
                    "alpha", of: sequencer, stores: ["counter"],
                    options: ["--feed", relay.address])
                let lines = String(repeating: "increment\n", count: 2_000)
                let file = try site.write(lines, to: "actions")
                let stream = try site.start([
                    "dispatch", "counter", "--file", file, "--connect", sequencer.address,
                ])
                try await site.expect(worker, toFollow: relay, falling: sequencer.feed)
                let outcome = try await Tool.outcome(of: stream)
                #expect(outcome.end == .exited(0), "\(outcome.message)")
                try await site.counter(2_000, in: worker, of: sequencer)
                // Nothing was lost, and the sequencer was there all the time.
                let events = try worker.child.output.soFar.map { try object($0)[key: "event"] }
                #expect(events == ["ready", "feedFellBack"])
            }
        }

        @Test func `a node leaves a relay that is silent, and misses nothing`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let relay = try await site.relay(of: sequencer.feed)
                let worker = try await site.worker(
                    "alpha", of: sequencer, stores: ["counter"],
                    options: ["--feed", relay.address])
                relay.child.signal(SIGSTOP)
                _ = try await site.dispatch("increment", to: "counter", at: sequencer.address)
                let event = try await site.event("feedFellBack", of: worker.child)
                #expect(event[key: "message"]?.string?.contains("nothing comes") == true)
                try await site.counter(1, in: worker, of: sequencer)
                _ = try await site.event("reconnected", of: worker.child)
                relay.child.signal(SIGCONT)
            }
        }

        @Test func `a sequencer announces no address that can be no relay's`() async throws {
            try await withSite { site in
                let many = (1...16).map { "tcp://10.0.0.1:\($0)" }.joined(separator: ",")
                for address in ["nonsense", "tcp://10.0.0.1:0", "ipc:///a b", many] {
                    let outcome = try await site.run("sequencer", "--memory", "--relay", address)
                    #expect(outcome.end == .exited(64), "\(outcome)")
                }
            }
        }

        @Test func `a command follows the log through a relay`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let relay = try await site.relay(of: sequencer.feed)
                _ = try await site.worker("alpha", of: sequencer, stores: ["counter"])
                let log = try site.start([
                    "log", "--follow", "--json", "--connect", sequencer.address, "--feed",
                    relay.address,
                ])
                _ = try await log.output.line(0)
                _ = try await site.dispatch("increment", to: "counter", at: sequencer.address)
                _ = try await log.output.first { $0.contains("increment") }
                relay.child.signal(SIGKILL)
                _ = try await log.errors.first {
                    $0.contains("no longer comes from \(relay.address)")
                }
                log.signal(SIGINT)
                #expect(try await log.end() == .exited(0))
            }
        }

        @Test func `nodes find the relay that the sequencer announces`() async throws {
            try await withSite { site in
                let place = "ipc://\(site.path("relay"))"
                let sequencer = try await site.sequencer("--relay", place)
                let early = try await site.worker("early", of: sequencer, stores: ["counter"])
                let event = try await site.event("feedFellBack", of: early.child)
                #expect(event[key: "from"]?.string == place)
                let relay = try await site.relay(of: sequencer.feed, at: place)
                let worker = try await site.worker("alpha", of: sequencer, stores: ["counter"])
                _ = try await site.dispatch("increment", to: "counter", at: sequencer.address)
                for worker in [early, worker] {
                    try await site.counter(1, in: worker, of: sequencer)
                }
                try await site.expect(worker, toFollow: relay, falling: sequencer.feed)
            }
        }

        @Test func `a relay of a relay passes everything on, and ends with it`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let first = try await site.relay(of: sequencer.feed)
                let second = try await site.relay(of: "\(first.address),\(sequencer.feed)")
                let worker = try await site.worker(
                    "alpha", of: sequencer, stores: ["counter"],
                    options: ["--feed", second.address])
                _ = try await site.dispatch("increment", to: "counter", at: sequencer.address)
                try await site.counter(1, in: worker, of: sequencer)
                try await first.child.destroy()
                let lost = try await site.event("disconnected", of: second.child)
                #expect(lost[key: "feed"]?.string == first.address)
                let event = try await site.event("feedFellBack", of: worker.child)
                #expect(event[key: "from"]?.string == second.address)
                // The other one goes on with the next feed that it was given.
                let again = try await site.event("connected", of: second.child)
                #expect(again[key: "feed"]?.string == sequencer.feed)
                _ = try await site.dispatch("increment", to: "counter", at: sequencer.address)
                try await site.counter(2, in: worker, of: sequencer)
            }
        }

        @Test func `a sequencer is killed and starts again behind its relay`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer(data: "log")
                let relay = try await site.relay(of: sequencer.feed)
                let worker = try await site.worker(
                    "alpha", of: sequencer, stores: ["counter"],
                    options: ["--feed", relay.address])
                _ = try await site.dispatch("increment", to: "counter", at: sequencer.address)
                try await sequencer.child.destroy()
                _ = try await site.event("disconnected", of: relay.child)
                let again = try await site.sequencer(data: "log", at: sequencer)
                _ = try await site.event("connected", of: relay.child)
                _ = try await site.event("reconnected", of: worker.child)
                _ = try await site.dispatch("increment", to: "counter", at: again.address)
                try await site.counter(2, in: worker, of: again)
                let events = try worker.child.output.soFar.map { try object($0)[key: "event"] }
                #expect(!events.contains("historyLost") && !events.contains("missed"))
            }
        }

        @Test func `a relay stops listening while its feed is silent`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let relay = try await site.relay(of: sequencer.feed)
                let subscriber = try MonitoredSubscriber(relay.address)
                try await subscriber.next(ZMQ_EVENT_CONNECTED)
                sequencer.child.signal(SIGSTOP)
                let lost = try await site.event("disconnected", of: relay.child)
                #expect(lost[key: "message"]?.string?.contains("nothing comes") == true)
                try await subscriber.next(ZMQ_EVENT_DISCONNECTED)
                #expect(!canConnect(to: relay.address))
                sequencer.child.signal(SIGCONT)
                _ = try await site.event("connected", of: relay.child)
                try await subscriber.next(ZMQ_EVENT_CONNECTED)
            }
        }

        #if os(Linux)
            @Test func `no connection of a subscriber outlives the relay's own`() async throws {
                try await withSite { site in
                    let sequencer = try await site.sequencer()
                    let proxy = try Proxy(before: sequencer.feed)
                    let relay = try await site.relay(of: proxy.address)
                    let subscriber = try MonitoredSubscriber(relay.address)
                    try await subscriber.next(ZMQ_EVENT_CONNECTED)
                    proxy.close()
                    _ = try await site.event("disconnected", of: relay.child)
                    try await subscriber.next(ZMQ_EVENT_DISCONNECTED)
                    #expect(!canConnect(to: relay.address))
                    let again = try Proxy(before: sequencer.feed)
                    defer { again.close() }
                    _ = try await site.event("connected", of: relay.child)
                    try await subscriber.next(ZMQ_EVENT_CONNECTED)
                }
            }
        #endif

        @Test func `a feed that never answers is left for the next one`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let port = try HeldPort(isListening: true)
                let relay = try site.start([
                    "relay", "--json", "--bind", "tcp://127.0.0.1:0", "--feed", port.address,
                    "--feed", sequencer.feed,
                ])
                let trouble = try await site.event("unreachable", of: relay)
                #expect(trouble[key: "feed"]?.string == port.address)
                let ready = try await site.event("ready", of: relay)
                #expect(ready[key: "feed"]?.string == sequencer.feed)
            }
        }

        @Test func `whatever is wrong with a relay's addresses is said`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                // Keys are missing, the port is another's, and so on.
                let mistakes = [
                    (["--feed", "nonsense"], 64, "nonsense"),
                    (["--feed", "tcp://*:1"], 64, "connected to"),
                    (["--feed", sequencer.feed, "--bind", "tcp://0.0.0.0:0"], 64, "--insecure"),
                    (
                        ["--feed", sequencer.feed, "--bind", sequencer.address], 73,
                        "Another program"
                    ),
                    (
                        ["--feed", sequencer.feed, "--authorized", site.path("none")], 64,
                        "go together"
                    ),
                ]
                for (words, code, message) in mistakes {
                    let outcome = try await Tool.outcome(of: try site.start(["relay"] + words))
                    #expect(outcome.end == .exited(Int32(code)), "\(outcome)")
                    #expect(outcome.message.contains(message), "\(outcome)")
                }
                // The sequencer's other address: no feed. The relay goes on to the next one.
                let relay = try site.start([
                    "relay", "--json", "--bind", "tcp://127.0.0.1:0", "--feed",
                    "\(sequencer.address),\(sequencer.feed)",
                ])
                let trouble = try await site.event("unreachable", of: relay)
                #expect(trouble[key: "feed"]?.string == sequencer.address)
                #expect(trouble[key: "message"]?.string?.contains("address of a feed") == true)
                let ready = try await site.event("ready", of: relay)
                #expect(ready[key: "feed"]?.string == sequencer.feed)
                relay.signal(SIGTERM)
                #expect(try await relay.end() == .exited(0))
            }
        }
    }
}
