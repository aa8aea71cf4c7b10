import CZeroMQ
import Conflux
import Foundation
import Spawning
import Testing

extension ProcessTests {
    /// Peers of a relay that send garbage, or read nothing.
    struct RelayBoundTests {
        @Test func `garbage and many subscriptions disturb no node behind a relay`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let relay = try await site.relay(of: sequencer.feed)
                let worker = try await site.worker(
                    "alpha", of: sequencer, stores: ["counter"],
                    options: ["--feed", relay.address])
                let many = try MonitoredSubscriber(
                    relay.address, to: (0..<10_000).map { "topic-\($0)" })
                try await many.next(ZMQ_EVENT_CONNECTED)
                let raw = try RawPeer(ZMQ_STREAM)
                try raw.connect(relay.address)
                let identity = try #require(raw.receive()?.first)
                raw.send(identity, [UInt8](repeating: 0x5A, count: 100_000))
                let flood = try LibraryPeer(ZMQ_XSUB, relay.address)
                for _ in 0..<1_000 { flood.send([[UInt8]](repeating: [7, 7], count: 50)) }
                // A subscription that is too long ends the connection.
                let long = try MonitoredSubscriber(
                    relay.address, to: [String(repeating: "x", count: 2_000)])
                try await long.next(ZMQ_EVENT_CONNECTED)
                try await long.next(ZMQ_EVENT_DISCONNECTED)
                for count in 1...3 {
                    _ = try await site.dispatch("increment", to: "counter", at: sequencer.address)
                    try await site.counter(count, in: worker, of: sequencer)
                }
                try await site.expect(worker, toFollow: relay, falling: sequencer.feed)
            }
        }

        @Test func `a feed whose machine is gone keeps a relay from no other feed`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gone = try FullListener()
                let relay = try await site.relay(of: "\(gone.address),\(sequencer.feed)")
                let ready = try await site.event("ready", of: relay.child)
                #expect(ready[key: "feed"]?.string == sequencer.feed)
            }
        }

        #if os(Linux)
            @Test(.timeLimit(.minutes(3)))
            func `a subscriber that reads nothing is cut off, and delays no node`() async throws {
                try await withSite { site in
                    let sequencer = try await site.sequencer()
                    let relay = try await site.relay(of: sequencer.feed)
                    let worker = try await site.worker(
                        "alpha", of: sequencer, stores: ["document"],
                        options: ["--feed", relay.address])
                    let before = try descriptors(of: relay)
                    let slow = try RawConnection(to: relay.address)
                    let isSubscribed = slow.subscribe()
                    #expect(isSubscribed)
                    while try descriptors(of: relay) <= before {
                        _ = try await site.status(at: sequencer.address)
                    }
                    let text = String(repeating: "x", count: 100_000)
                    let line = #"{"set":{"at":"/text","value":"\#(text)"}}"#
                    let last = try await site.dispatch(
                        lines: [String](repeating: line, count: 300), to: "document",
                        at: sequencer.address)
                    _ = try await site.sightings(
                        of: "document", at: sequencer.address, in: ["alpha"], from: last)
                    // What it does not take keeps the relay from nothing, and its connection ends after ten seconds.
                    while try descriptors(of: relay) > before {
                        _ = try await site.status(at: sequencer.address)
                    }
                    try await site.expect(worker, toFollow: relay, falling: sequencer.feed)
                }
            }

            private func descriptors(of relay: RunningRelay) throws -> Int {
                try FileManager.default
                    .contentsOfDirectory(atPath: "/proc/\(relay.child.processID)/fd").count
            }
        #endif
    }
}
