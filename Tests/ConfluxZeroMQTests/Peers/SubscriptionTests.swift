import CZeroMQ
import ConfluxVocabulary
import Testing

@testable import ConfluxZeroMQ

/// What a publisher sends to subscribers with any prefixes, libzmq's among them.
@Suite struct SubscriptionTests {
    private static let server = CurveKeyPair.random()
    private static let client = CurveKeyPair.random()

    private func publisher(_ isEncrypted: Bool = false) throws -> (PublisherSocket, Endpoint) {
        var settings = SocketSettings.test
        if isEncrypted { settings.security = .server(Self.server) }
        let publisher = try PublisherSocket(settings: settings)
        return (publisher, try publisher.bind(Endpoint("tcp://127.0.0.1:0")))
    }

    /// An XSUB of libzmq, which gets whatever the publisher sends to it.
    private func peer(_ endpoint: Endpoint, isEncrypted: Bool = false) throws -> RawSocket {
        try RawSocket(
            ZMQ_XSUB, keys: isEncrypted ? (Self.client, Self.server.publicKey) : nil,
            connectingTo: endpoint)
    }

    private func text(_ text: String) -> Bytes { Bytes(text.utf8) }

    /// Waits until so many more subscriptions have begun.
    private func awaitSubscriptions(_ count: Int, of publisher: PublisherSocket) throws {
        var begun = 0
        try wait(for: publisher) {
            begun += try publisher.receiveSubscriptions()
            return begun >= count ? () : nil
        }
        #expect(begun == count)
    }

    @Test(arguments: [false, true])
    func `a peer gets what begins with one of its prefixes, until it cancels that one`(
        isEncrypted: Bool
    ) throws {
        let (publisher, endpoint) = try publisher(isEncrypted)
        let peer = try peer(endpoint, isEncrypted: isEncrypted)
        for prefix in ["a", "bb", "c"] { try peer.send(["\u{1}\(prefix)"]) }
        try awaitSubscriptions(3, of: publisher)
        for message in ["a1", "b", "bb2", "", "c3", "d"] { try publisher.send(text(message)) }
        for message in ["a1", "bb2", "c3"] {
            #expect(try peer.awaitMessage() == [Array(message.utf8)])
        }
        // Cancels of one prefix, and of one to which it was never subscribed.
        try peer.send(["\u{0}bb"])
        try peer.send(["\u{0}never"])
        try peer.send(["\u{1}e"])
        try awaitSubscriptions(1, of: publisher)
        for message in ["bb4", "a5", "c6", "e7"] { try publisher.send(text(message)) }
        for message in ["a5", "c6", "e7"] {
            #expect(try peer.awaitMessage() == [Array(message.utf8)])
        }
        // The empty prefix, and no longer.
        try peer.send(["\u{1}"])
        try awaitSubscriptions(1, of: publisher)
        try publisher.send(text("anything"))
        #expect(try peer.awaitMessage() == [Array("anything".utf8)])
        try peer.send(["\u{0}"])
        try peer.send(["\u{1}f"])
        try awaitSubscriptions(1, of: publisher)
        for message in ["other", "f8"] { try publisher.send(text(message)) }
        #expect(try peer.awaitMessage() == [Array("f8".utf8)])
    }

    @Test func `one cancellation ends a repeated subscription, as it does in libzmq`() throws {
        let theirs = try RawSocket(serving: ZMQ_XPUB)
        let (ours, endpoint) = try publisher()
        for isOurs in [true, false] {
            let peer = try peer(isOurs ? endpoint : theirs.endpoint)
            for message in ["\u{1}a", "\u{1}a", "\u{1}b", "\u{0}a", "\u{0}a", "\u{1}z"] {
                try peer.send([message])
            }
            if isOurs {
                try awaitSubscriptions(3, of: ours)
                for message in ["a1", "b2", "z3"] { try ours.send(text(message)) }
            } else {
                while try theirs.awaitMessage() != [[1] + "z".utf8] {}
                for message in ["a1", "b2", "z3"] { try theirs.send([message]) }
            }
            #expect(try peer.awaitMessage() == [Array("b2".utf8)])
            #expect(try peer.awaitMessage() == [Array("z3".utf8)])
        }
    }

    @Test func `a subscriber that cancels everything may subscribe again`() throws {
        let (publisher, endpoint) = try publisher()
        let peer = try peer(endpoint)
        for message in ["\u{1}a", "\u{0}a", "\u{1}b"] { try peer.send([message]) }
        try awaitSubscriptions(2, of: publisher)
        for message in ["a1", "b2"] { try publisher.send(text(message)) }
        #expect(try peer.awaitMessage() == [Array("b2".utf8)])
        #expect(publisher.levels.connections.level == 1)
    }

    @Test func `behind a proxy, a subscriber that leaves takes nothing from the others`() throws {
        let (publisher, endpoint) = try publisher()
        let proxy = try RawProxy(to: endpoint)
        let staying = try RawSocket(ZMQ_XSUB, connectingTo: proxy.endpoint)
        let all = try RawSocket(ZMQ_XSUB, connectingTo: proxy.endpoint)
        try staying.send(["\u{1}c"])
        try awaitSubscriptions(1, of: publisher)
        var leaving: RawSocket? = try RawSocket(ZMQ_XSUB, connectingTo: proxy.endpoint)
        try leaving?.send(["\u{1}x"])
        try leaving?.send(["\u{1}"])
        try awaitSubscriptions(2, of: publisher)
        try all.send(["\u{1}"])
        withExtendedLifetime(leaving) {}
        leaving = nil
        try proxy.awaitPassage(of: [0] + Array("x".utf8))
        // The proxy passes this on behind the cancellation.
        try staying.send(["\u{1}marker"])
        try proxy.awaitPassage(of: [1] + Array("marker".utf8))
        for number in 0..<100 {
            try publisher.send(text("c\(number)"))
            _ = try publisher.receiveSubscriptions()
        }
        for number in 0..<100 {
            #expect(try staying.awaitMessage() == [Array("c\(number)".utf8)])
        }
    }

    @Test func `commands of a later version of the protocol subscribe and cancel, too`() throws {
        let (publisher, endpoint) = try publisher()
        let peer = try RawStream(to: endpoint)
        try peer.shakeHands(as: "SUB")
        try peer.send(
            ZMTP.command("SUBSCRIBE", Array("a".utf8)) + ZMTP.command("SUBSCRIBE", Array("b".utf8))
                + ZMTP.command("CANCEL", Array("a".utf8)) + [0, 2, 1] + "d".utf8)
        try awaitSubscriptions(3, of: publisher)
        for message in ["a1", "b2", "d3"] { try publisher.send(text(message)) }
        publisher.close()
        let heard = try peer.receiveAll()
        let messages = [0, 2] + Array("b2".utf8) + [0, 2] + "d3".utf8
        #expect(heard.suffix(messages.count) == messages[...])
        #expect(
            heard.count
                == ZMTP.greetingBytes + ZMTP.command("READY", ZMTP.metadata(.publisher)).count
                + messages.count)
    }

    @Test func `a peer with more prefixes than its bound gets everything until it cancels some`() {
        var subscriptions = Subscriptions()
        let prefixes = (0..<100).map { text("prefix \($0)") }
        var added = 0
        for prefix in prefixes where !subscriptions.isToAll {
            let brings = subscriptions.add(prefix)
            #expect(brings)
            added += 1
        }
        #expect((50..<64).contains(added))
        #expect(subscriptions.match(text("other")))
        var brings = subscriptions.add(prefixes[99])
        #expect(!brings, "it gets everything already")
        // The cancellations of these two end that.
        subscriptions.remove(prefixes[99])
        #expect(subscriptions.match(text("other")))
        subscriptions.remove(prefixes[added - 1])
        #expect(!subscriptions.match(text("other")))
        #expect(subscriptions.match(text("prefix 0 and more")))
        for prefix in prefixes { subscriptions.remove(prefix) }
        #expect(subscriptions.isEmpty)
        brings = subscriptions.add(prefixes[99])
        #expect(brings && !subscriptions.isToAll, "there is room again")
    }

    @Test func `a long prefix among short ones breaks nothing`() throws {
        let (publisher, endpoint) = try publisher()
        let peer = try peer(endpoint)
        let long = String(repeating: "l", count: 300)
        let longest = String(repeating: "m", count: 50_000)
        for prefix in ["a", long, longest] { try peer.send(["\u{1}\(prefix)"]) }
        try awaitSubscriptions(3, of: publisher)
        for prefix in [longest, long] { try peer.send(["\u{0}\(prefix)"]) }
        try peer.send(["\u{1}z"])
        try awaitSubscriptions(1, of: publisher)
        for message in ["other", "a1", "z2"] { try publisher.send(text(message)) }
        #expect(try peer.awaitMessage() == [Array("a1".utf8)])
        #expect(try peer.awaitMessage() == [Array("z2".utf8)])
    }
}
