import CZeroMQ
import ConfluxVocabulary
import Testing

@testable import ConfluxZeroMQ

/// Sockets of libzmq whose types don't fit ours.
@Suite struct SocketTypeTests {
    private static let server = CurveKeyPair.random()
    private static let client = CurveKeyPair.random()

    private func socket(_ isRouter: Bool, isEncrypted: Bool = false) throws -> (
        ServingSocket, Endpoint
    ) {
        var settings = SocketSettings.test
        if isEncrypted { settings.security = .server(Self.server) }
        let socket: ServingSocket =
            isRouter
            ? try RouterSocket(settings: settings) : try PublisherSocket(settings: settings)
        return (socket, try socket.bind(Endpoint("tcp://127.0.0.1:0")))
    }

    /// Lets a socket serve until a peer has something to report.
    private func serve<Result>(_ socket: ServingSocket, until body: () throws -> Result?) throws
        -> Result
    {
        try wait(for: socket, pause: .milliseconds(5)) {
            if let router = socket as? RouterSocket {
                while let input = try router.receive() {
                    if case .message = input { Issue.record("\(input)") }
                }
            } else if let publisher = socket as? PublisherSocket {
                #expect(try publisher.receiveSubscriptions() == 0)
            }
            return try body()
        }
    }

    @Test(arguments: [
        "REQ", "REP", "PAIR", "PUSH", "PULL", "PUB", "SUB", "XSUB", "XPUB", "CLIENT", "SCATTER",
        "XREQ", "DISH", "",
    ])
    func `a router says why it refuses a socket of another type`(type: String) throws {
        let (router, endpoint) = try socket(true)
        let peer = try RawStream(to: endpoint)
        try peer.shakeHands(as: type)
        let reason = "wrong socket type: a ROUTER serves DEALER and ROUTER only"
        let answer = ZMTP.greeting(.null) + ZMTP.error(reason)
        var heard: [UInt8] = []
        _ = try serve(router) { () -> Bool? in
            if peer.hasInput { heard += try peer.receive() }
            return heard.count >= answer.count ? true : nil
        }
        #expect(heard == answer)
        #expect(try peer.receiveAll() == [])
    }

    @Test(
        arguments: [
            (true, ZMQ_REQ), (true, ZMQ_PUSH), (true, ZMQ_PAIR), (false, ZMQ_REQ),
            (false, ZMQ_DEALER), (false, ZMQ_PULL),
        ] as [(Bool, Int32)], [false, true])
    func `a socket of libzmq's whose type does not fit is refused for good`(
        pair: (isRouter: Bool, type: Int32), isEncrypted: Bool
    ) throws {
        let (socket, endpoint) = try socket(pair.isRouter, isEncrypted: isEncrypted)
        let peer = try RawSocket(
            pair.type, keys: isEncrypted ? (Self.client, Self.server.publicKey) : nil,
            isMonitored: true, connectingTo: endpoint)
        let event = try serve(socket) {
            try peer.nextEvent(
                among: [
                    ZMQ_EVENT_HANDSHAKE_SUCCEEDED, ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL,
                    ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL, ZMQ_EVENT_HANDSHAKE_FAILED_AUTH,
                    ZMQ_EVENT_DISCONNECTED,
                ])
        }
        #expect(event != ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
        // It does not connect again: then it would take messages meanwhile.
        try serve(socket) { peer.canSend ? nil : () }
    }

    @Test func `a client of ours learns that it reached the feed, encrypted or not`() throws {
        for isEncrypted in [false, true] {
            let (publisher, endpoint) = try socket(false, isEncrypted: isEncrypted)
            var settings = SocketSettings.test
            if isEncrypted {
                settings.security = .client(Self.client, server: Self.server.publicKey)
            }
            let dealer = try ClientSocket(.dealer, settings: settings)
            try dealer.connect(endpoint)
            let failure = try wait(for: dealer, publisher) {
                _ = try (publisher as? PublisherSocket)?.receiveSubscriptions()
                return try dealer.failure()
            }
            #expect(failure == .otherSocket)
        }
    }
}
