import CZeroMQ
import Conflux
import Foundation
import Spawning
import Testing

extension ProcessTests {
    /// Clients of a gateway that ask for too much, or read too slowly.
    struct GatewayBoundTests {
        @Test(.timeLimit(.minutes(3)))
        func `a slow subscriber loses messages, sees that, and asks for what it lacks`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(of: sequencer)
                let topic = "action:document/prefs\0"
                let slow = try LibraryPeer(ZMQ_SUB, gateway.publish, topics: [topic])
                var last = try await slow.news().sequence
                // Sockets hold some megabytes, and the gateway holds 10,000 messages.
                let peer = try LibraryPeer(ZMQ_DEALER, gateway.ask)
                let text = String(repeating: "x", count: 1_000)
                let set = #"{"set":{"at":"/a","value":"\#(text)"}}"#
                let lines = String(repeating: set + "\n", count: 20_000)
                let file = try site.write(lines, to: "actions")
                let outcome = try await site.run(
                    "dispatch", "document/prefs", "--file", file, "--connect", sequencer.address)
                #expect(outcome.end == .exited(0))
                let newest = try #require(
                    try await peer.ask(#"{"store":"document/prefs","dispatch":\#(set)}"#)[
                        key: "receipt"]?[key: "sequence"]?.number)
                var gaps = 0
                var kinds: [String: Int] = [:]
                while last < newest {
                    let news: LibraryPeer.News
                    do {
                        news = try await slow.news(within: .seconds(2))
                    } catch {
                        // The newest messages are lost, too: the answer to a request has them.
                        gaps += 1
                        break
                    }
                    if news.kind != "state", news.previous > last { gaps += 1 }
                    last = news.sequence
                    kinds[news.kind, default: 0] += 1
                }
                #expect(gaps > 0, "\(kinds)")
                let answer = try await peer.ask(
                    #"{"get":"document/prefs","since":\#(last),"as":"actions"}"#)
                #expect(answer[key: "sequence"]?.number ?? 0 >= newest)
                #expect(answer[key: "state"] != nil || answer[key: "messages"] != nil)
            }
        }

        @Test func `requests without an answer are bounded, and so are dispatches with keys`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(of: sequencer)
                let peer = try LibraryPeer(ZMQ_DEALER, gateway.ask)
                let other = try LibraryPeer(ZMQ_DEALER, gateway.ask)
                let increment = #""store":"counter","dispatch":{"increment":{}},"timeout":2000}"#
                #expect(try await peer.ask("{\(increment)")[key: "receipt"] != nil)
                sequencer.child.signal(SIGSTOP)
                for number in 0..<80 {
                    peer.send([[], Array(#"{"key":"k\#(number)",\#(increment)"#.utf8)])
                }
                #expect(
                    String(decoding: try await peer.receive()[1], as: UTF8.self)
                        .contains("dispatches with keys are under way"))
                // Another connection has a share of these, too.
                let patientPeer = try LibraryPeer(ZMQ_DEALER, gateway.ask)
                #expect(
                    try await patientPeer.failure(#"{"key":"other",\#(increment)"#)
                        != "tooManyRequests")
                let patient = increment.replacing("2000", with: "60000")
                for _ in 0..<36_000 { other.send([[], Array("{\(patient)".utf8)]) }
                #expect(
                    String(decoding: try await other.receive()[1], as: UTF8.self)
                        .contains("tooManyRequests"))
                // Another connection has its own share.
                let third = try LibraryPeer(ZMQ_DEALER, gateway.ask)
                #expect(try await third.ask(#"{"stores":true}"#)[key: "stores"] != nil)
                sequencer.child.signal(SIGCONT)
            }
        }

        @Test func `ten thousand subscriptions of one client and garbage disturb nobody`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(of: sequencer)
                let subscriber = try LibraryPeer(
                    ZMQ_SUB, gateway.publish, topics: ["counter/shared\0"])
                _ = try await subscriber.news()
                let many = try LibraryPeer(
                    ZMQ_SUB, gateway.publish, topics: (0..<10_000).map { "topic-\($0)\0" })
                #expect(try await many.news().kind == "error")
                for address in [gateway.publish, gateway.ask] {
                    let peer = try RawPeer(ZMQ_STREAM)
                    try peer.connect(address)
                    let identity = try #require(peer.receive()?.first)
                    peer.send(identity, [UInt8](repeating: 0x5A, count: 100_000))
                }
                let flood = try LibraryPeer(ZMQ_XSUB, gateway.publish)
                for _ in 0..<1_000 { flood.send([[UInt8]](repeating: [7, 7], count: 50)) }
                let sequence = try await site.dispatch(
                    "increment", to: "counter", at: sequencer.address)
                var news = try await subscriber.news()
                // To libzmq some garbage is an old peer, which subscribes to everything.
                while news.kind == "state" { news = try await subscriber.news() }
                #expect(news.sequence == sequence, "\(news)")
                #expect(gateway.child.isRunning)
            }
        }
    }
}
