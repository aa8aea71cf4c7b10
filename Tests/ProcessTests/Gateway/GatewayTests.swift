import CZeroMQ
import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// A gateway, and sockets of libzmq that know nothing of Conflux.
    struct GatewayTests {
        private static let set =
            #"{"store":"document/prefs","dispatch":{"set":{"at":"/theme","value":"dark"}}}"#

        @Test func `a subscriber gets the state, then each change, and each names the one before`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(of: sequencer)
                let topics = ["", "state:", "action:"].map { "\($0)document/prefs\0" }
                var peers: [LibraryPeer] = []
                for topic in topics {
                    let peer = try LibraryPeer(ZMQ_SUB, gateway.publish, topics: [topic])
                    let first = try await peer.news()
                    #expect(first.topic == topic && first.kind == "state" && first.body == "{}")
                    peers.append(peer)
                }
                _ = try await site.dispatch(
                    #"{"set":{"at":"/list","value":[1,2,3]}}"#, to: "document/prefs",
                    at: sequencer.address)
                _ = try await site.dispatch(
                    #"{"set":{"at":"/list","value":[1,5,2,3]}}"#, to: "document/prefs",
                    at: sequencer.address)
                let bodies = [
                    [
                        #"[{"op":"add","path":"/list","value":[1,2,3]}]"#,
                        #"[{"op":"add","path":"/list/1","value":5}]"#,
                    ], [#"{"list":[1,2,3]}"#, #"{"list":[1,5,2,3]}"#],
                    [
                        #"{"set":{"at":"/list","value":[1,2,3]}}"#,
                        #"{"set":{"at":"/list","value":[1,5,2,3]}}"#,
                    ],
                ]
                for (peer, bodies) in zip(peers, bodies) {
                    var last: UInt64?
                    for body in bodies {
                        var news = try await peer.news()
                        // The state comes again when somebody else subscribes.
                        while news.kind == "state", news.body == "{}" {
                            news = try await peer.news()
                        }
                        #expect(news.body == body)
                        #expect(last == nil || news.previous == last)
                        for member in ["log", "epoch", "timestamp", "origin"] {
                            #expect(news.head[key: member] != .null, "\(member)")
                        }
                        last = news.sequence
                    }
                }
                // A part of a name has the topics of several stores; the zero byte ends a name.
                let all = try LibraryPeer(
                    ZMQ_SUB, gateway.publish, topics: ["document/", "counter/"])
                let stores = [try await all.news().topic, try await all.news().topic]
                #expect(Set(stores) == ["document/prefs\0", "counter/shared\0"])
                let wrong = try LibraryPeer(ZMQ_SUB, gateway.publish, topics: ["document/pre\0"])
                let error = try await wrong.news()
                #expect(error.kind == "error" && error.topic == "document/pre\0")
                #expect(error.head[key: "sequence"]?.number == 0)
                let beats = try LibraryPeer(
                    ZMQ_SUB, gateway.publish, topics: ["beat:document/prefs\0"])
                #expect(try await beats.news().kind == "beat")
            }
        }

        @Test func `requests are answered, and whatever is wrong with one is said`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(of: sequencer)
                let peer = try LibraryPeer(ZMQ_DEALER, gateway.ask)
                let receipt = try await peer.ask(Self.set)[key: "receipt"]
                let sequence = try #require(receipt?[key: "sequence"]?.number)
                let state = try await peer.ask(
                    #"{"get":"document/prefs","atLeast":\#(sequence),"id":7}"#)
                #expect(state[key: "state"]?.description == #"{"theme":"dark"}"#)
                #expect(state[key: "sequence"]?.number == sequence && state[key: "id"]?.number == 7)
                let missed = try await peer.ask(
                    #"{"get":"document/prefs","since":\#(sequence - 1)}"#)
                #expect(missed[key: "messages"]?.array?.count == 1)
                let actions = try await peer.ask(
                    #"{"get":"document/prefs","since":\#(sequence - 1),"as":"actions"}"#)
                #expect(
                    actions[key: "messages"]?.array?.first?[key: "body"]?.description
                        == #"{"set":{"at":"/theme","value":"dark"}}"#)
                // Too long ago, and a number that only another history can have.
                for since in [0, sequence + 1_000] {
                    let answer = try await peer.ask(#"{"get":"document/prefs","since":\#(since)}"#)
                    #expect(answer[key: "state"] != nil, "since \(since)")
                }
                let listing = try await peer.ask(#"{"stores":true}"#)
                #expect(listing[key: "stores"]?.array?.count == 2)
                #expect(
                    try await peer.ask(#"{"actions":"document/prefs"}"#)[key: "actions"]?[
                        key: "set"]
                        != nil)
                let failures = [
                    (
                        #"{"store":"document/prefs","dispatch":{"remove":{"at":"/none"}}}"#,
                        "refused"
                    ),
                    (#"{"store":"document/prefs","dispatch":{"sat":{}}}"#, "invalidAction"),
                    (#"{"store":"document/other","dispatch":{}}"#, "unknownStore"),
                    (#"{"get":"document/prefs","atLeast":99999,"timeout":200}"#, "timedOut"),
                    (#"{"get":"document/prefs","atleast":1}"#, "invalidRequest"),
                    (#"{"dispatch":{}}"#, "invalidRequest"), (#"{"get":5}"#, "invalidRequest"),
                    (#"{"stores":true,"timeout":0}"#, "invalidRequest"), ("[]", "invalidRequest"),
                    ("garbage", "invalidRequest"), ("", "invalidRequest"),
                ]
                for (request, code) in failures {
                    let found = try await peer.failure(request)
                    #expect(found == code, "\(request)")
                }
                // A refused action has its place, too.
                let refused = try await peer.ask(
                    #"{"store":"document/prefs","dispatch":{"remove":{"at":"/none"}}}"#)
                let last = try #require(refused[key: "error"]?[key: "sequence"]?.number)
                let after = try await peer.ask(#"{"get":"document/prefs","atLeast":\#(last)}"#)
                #expect(after[key: "sequence"]?.number == last)
                // Without a delimiter, and with too many parts.
                peer.send([Array(#"{"stores":true}"#.utf8)])
                #expect(try await peer.receive().count == 1)
                peer.send([[], Array("{}".utf8), Array("{}".utf8)])
                #expect(
                    String(decoding: try await peer.receive()[1], as: UTF8.self).contains(
                        "one part"))
                peer.send([[UInt8]](repeating: [1], count: 300))
                #expect(
                    String(decoding: try await peer.receive().last ?? [], as: UTF8.self)
                        .contains("tooLarge"))
                let long = String(repeating: "x", count: 5_000)
                #expect(try await peer.failure(#"{"stores":true,"id":"\#(long)"}"#) == "tooLarge")
                // Many at once.
                for number in 0..<500 {
                    peer.send([[], Array(#"{"id":\#(number),\#(Self.set.dropFirst())"#.utf8)])
                }
                var ids: Set<UInt64> = []
                for _ in 0..<500 {
                    let answer = try JSONValue(json: try await peer.receive()[1])
                    #expect(answer[key: "receipt"] != nil)
                    ids.insert(answer[key: "id"]?.number ?? 0)
                }
                #expect(ids.count == 500)
            }
        }

        @Test
        func `a key applies an action once, whoever repeats it, also after the gateway was killed`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(of: sequencer)
                let increment = #"{"store":"counter","dispatch":{"increment":{}},"key":"k1"}"#
                let peer = try LibraryPeer(ZMQ_DEALER, gateway.ask)
                let first = try await peer.ask(increment)
                #expect(first[key: "receipt"] != nil)
                #expect(try await peer.ask(increment) == first)
                let sequence = first[key: "receipt"]?[key: "sequence"]?.number
                #expect(
                    try await peer.ask(#"{"get":"counter"}"#)[key: "sequence"]?.number == sequence)
                #expect(first[key: "receipt"]?[key: "log"] != .null)
                #expect(
                    try await peer.failure(
                        #"{"store":"document/prefs","dispatch":{"remove":{"at":"/none"}},"key":"k2"}"#
                    )
                        == "refused")
                gateway.child.signal(SIGKILL)
                _ = try await gateway.child.end()
                let second = try await site.gateway(of: sequencer, at: gateway)
                let other = try LibraryPeer(ZMQ_DEALER, second.ask)
                #expect(try await other.ask(increment) == first)
                #expect(
                    try await other.ask(#"{"get":"counter"}"#)[key: "state"]?.description
                        == #"{"count":1}"#)
            }
        }

        @Test func `subscribers go on after the gateway was killed, and know what they missed`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                _ = try await site.worker("alpha", of: sequencer)
                let gateway = try await site.gateway(of: sequencer)
                let peer = try LibraryPeer(ZMQ_SUB, gateway.publish, topics: ["counter/shared\0"])
                let first = try await peer.news()
                _ = try await site.dispatch("increment", to: "counter", at: sequencer.address)
                #expect(try await peer.news().previous == first.sequence)
                gateway.child.signal(SIGKILL)
                _ = try await gateway.child.end()
                let missed = try await site.dispatch(
                    "increment", to: "counter", at: sequencer.address)
                _ = try await site.gateway(of: sequencer, at: gateway)
                var news = try await peer.news()
                while news.sequence < missed { news = try await peer.news() }
                #expect(news.kind == "state" && news.body.contains("2"))
                let next = try await site.dispatch(
                    "increment", to: "counter", at: sequencer.address)
                let last = try await peer.news()
                #expect(
                    last.kind == "change" && last.sequence == next && last.previous == news.sequence
                )
            }
        }

        @Test func `without a sequencer a dispatch says what became of it, and states can be read`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer(data: "log")
                let gateway = try await site.gateway(of: sequencer)
                let peer = try LibraryPeer(ZMQ_DEALER, gateway.ask)
                #expect(try await peer.ask(Self.set)[key: "receipt"] != nil)
                sequencer.child.signal(SIGSTOP)
                let code = try await peer.failure(#"{"timeout":300,\#(Self.set.dropFirst())"#)
                #expect(code == "outcomeUnknown")
                #expect(try await peer.ask(#"{"get":"document/prefs"}"#)[key: "state"] != nil)
                sequencer.child.signal(SIGCONT)
                #expect(try await peer.ask(Self.set)[key: "receipt"] != nil)
            }
        }

        @Test func `stock proxies stand between, on both sockets`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(of: sequencer)
                let publishing = try StockProxy(ZMQ_XPUB, ZMQ_XSUB, to: gateway.publish)
                let asking = try StockProxy(ZMQ_ROUTER, ZMQ_DEALER, to: gateway.ask)
                let peer = try LibraryPeer(ZMQ_DEALER, asking.address)
                let subscriber = try LibraryPeer(
                    ZMQ_SUB, publishing.address, topics: ["document/prefs\0"])
                let first = try await subscriber.news()
                #expect(first.kind == "state")
                let receipt = try await peer.ask(Self.set)[key: "receipt"]
                let change = try await subscriber.news()
                #expect(change.sequence == receipt?[key: "sequence"]?.number)
                #expect(change.previous == first.sequence)
                // The proxy has subscribed already, so this one gets no state, and its first message shows that.
                let late = try LibraryPeer(
                    ZMQ_SUB, publishing.address, topics: ["document/prefs\0"])
                let state = try await peer.ask(#"{"get":"document/prefs"}"#)
                var next: LibraryPeer.News?
                while next == nil {
                    _ = try await peer.ask(Self.set)
                    next = try? await late.news(within: .milliseconds(200))
                }
                let (has, previous) = (state[key: "sequence"]?.number ?? 0, next?.previous ?? 0)
                if previous > has {
                    let missed = try await peer.ask(#"{"get":"document/prefs","since":\#(has)}"#)
                    let heads = missed[key: "messages"]?.array?.compactMap { $0[key: "head"] } ?? []
                    #expect(heads.first?[key: "previous"]?.number == has)
                    #expect(heads.contains { $0[key: "sequence"]?.number == previous })
                }
            }
        }

        @Test func `a dropped store ends for its subscribers and askers`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(of: sequencer)
                let peer = try LibraryPeer(ZMQ_DEALER, gateway.ask)
                let subscriber = try LibraryPeer(
                    ZMQ_SUB, gateway.publish, topics: ["counter/shared\0"])
                _ = try await subscriber.news()
                _ = try await site.run("drop", "counter", "--yes", "--connect", sequencer.address)
                #expect(try await subscriber.news().kind == "ended")
                #expect(try await peer.failure(#"{"get":"counter"}"#) == "storeEnded")
                #expect(try await peer.ask(#"{"get":"document/prefs"}"#)[key: "state"] != nil)
            }
        }

        @Test
        func `an address that is missing, too open, taken or wrong ends the gateway with advice`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(of: sequencer)
                let cases: [([String], Int32, String)] = [
                    ([], 64, "--publish"), (["--publish", "tcp://0.0.0.0:0"], 64, "--insecure"),
                    (["--publish", "tipc://{5555,0,0}"], 64, "not an endpoint"),
                    (["--publish", gateway.publish], 73, "in use"),
                    (["--ask", "127.0.0.1"], 64, "not an endpoint"),
                    (["--ask", "tcp://192.0.2.1:7411", "--insecure"], 64, "tcp://HOST:PORT"),
                    (["--ask", "tcp://127.0.0.1:0", "--authorized", "none"], 64, "--curve-secret"),
                ]
                for (options, code, words) in cases {
                    let outcome = try await Tool.outcome(
                        of: try site.start(
                            ["gateway", "--connect", sequencer.address] + options))
                    #expect(outcome.end == .exited(code), "\(options): \(outcome.message)")
                    #expect(outcome.message.contains(words), "\(outcome.message)")
                }
            }
        }
    }
}
