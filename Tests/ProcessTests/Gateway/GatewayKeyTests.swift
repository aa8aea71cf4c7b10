import CZeroMQ
import Conflux
import Foundation
import Spawning
import Testing

extension ProcessTests {
    /// A gateway that admits only keys, by libzmq's authentication.
    struct GatewayKeyTests {
        @Test func `each key has its own rights, and what it lacks is said`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(
                    of: sequencer,
                    admitting: [
                        "reader": "observe=document/*", "writer": "observe=*/* dispatch=counter",
                    ])
                let writer = try LibraryPeer(
                    ZMQ_DEALER, gateway.ask, keys: try site.keys("writer"))
                let reader = try LibraryPeer(
                    ZMQ_DEALER, gateway.ask, keys: try site.keys("reader"))
                let increment = #"{"store":"counter","dispatch":{"increment":{}}}"#
                #expect(try await writer.ask(increment)[key: "receipt"] != nil)
                #expect(try await reader.failure(increment) == "notPermitted")
                #expect(try await reader.failure(#"{"get":"counter"}"#) == "notPermitted")
                #expect(try await reader.ask(#"{"get":"document/prefs"}"#)[key: "state"] != nil)
                #expect(try await reader.ask(#"{"stores":true}"#)[key: "stores"]?.array?.count == 1)
                #expect(try await reader.failure(#"{"actions":"counter"}"#) == "notPermitted")
                let unknown = try await reader.ask(#"{"get":"other"}"#)
                #expect(!unknown.description.contains("counter"))
                // Whoever subscribes must be allowed to read everything that is published.
                let all = try LibraryPeer(
                    ZMQ_SUB, gateway.publish, keys: try site.keys("writer"), topics: [""])
                #expect(try await all.news().kind == "state")
                let some = try LibraryPeer(
                    ZMQ_SUB, gateway.publish, keys: try site.keys("reader"),
                    topics: ["document/prefs\0"])
                let denied = try await site.event("subscriberDenied", of: gateway.child)
                #expect(denied[key: "name"] == "reader")
                #expect(denied[key: "address"]?.string == gateway.publish)
                await #expect(throws: Failure.self) {
                    _ = try await some.news(within: .milliseconds(300))
                }
            }
        }

        @Test func `nobody connects without an authorised key, and a key that is removed is out`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(
                    of: sequencer, admitting: ["reader": "observe=*/*", "writer": "observe=*/*"])
                for keys in [nil, try site.keys("stranger")] {
                    let peer = try LibraryPeer(ZMQ_DEALER, gateway.ask, keys: keys)
                    await #expect(throws: Failure.self) {
                        _ = try await peer.ask(#"{"stores":true}"#, within: .milliseconds(500))
                    }
                }
                let reader = try LibraryPeer(
                    ZMQ_SUB, gateway.publish, keys: try site.keys("reader"),
                    topics: ["counter/shared\0"])
                let asking = try LibraryPeer(
                    ZMQ_DEALER, gateway.ask, keys: try site.keys("reader"))
                let writer = try LibraryPeer(
                    ZMQ_SUB, gateway.publish, keys: try site.keys("writer"),
                    topics: ["counter/shared\0"])
                _ = try await reader.news()
                #expect(try await asking.ask(#"{"stores":true}"#)[key: "stores"] != nil)
                _ = try await writer.news()
                // It would be answered when its time is over, long after the test.
                let waiting = try LibraryPeer(
                    ZMQ_DEALER, gateway.ask, keys: try site.keys("reader"))
                waiting.send([
                    [], Array(#"{"get":"counter","atLeast":9999,"timeout":300000}"#.utf8),
                ])
                // Requests of one connection are taken in their order.
                #expect(try await waiting.ask(#"{"stores":true}"#)[key: "stores"] != nil)
                try await site.reload(["writer": "observe=*/*"], at: gateway)
                #expect(try await asking.failure(#"{"stores":true}"#) == "notPermitted")
                await #expect(throws: Failure.self) {
                    _ = try await waiting.receive(within: .milliseconds(300))
                }
                // The other one connects again, and gets the state.
                let sequence = try await site.dispatch(
                    "increment", to: "counter", at: sequencer.address)
                var news = try await writer.news()
                while news.sequence < sequence { news = try await writer.news() }
                await #expect(throws: Failure.self) {
                    while try await reader.news(within: .milliseconds(500)).sequence < sequence {}
                    Issue.record("the removed key got news")
                }
                _ = try site.write("nonsense", to: "authorized")
                gateway.child.signal(SIGHUP)
                _ = try await gateway.child.errors.first { $0.contains("stay authorised") }
            }
        }
    }
}
