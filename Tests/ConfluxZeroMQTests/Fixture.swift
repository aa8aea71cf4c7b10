import CZeroMQ
import ConfluxVocabulary
import ConfluxZeroMQ
import Foundation
import Testing

/// How long a test waits for what must happen.
let deadline = Duration.seconds(20)

/// Waits until `body` gives something, looking again whenever a socket becomes ready.
func wait<Result>(
    for socket: PolledSocket, _ interest: Poller.Interest = .readable,
    _ body: () throws -> Result?
) throws -> Result {
    let poller = Poller(waker: try Waker())
    _ = try poller.add(socket, interest)
    let end = ContinuousClock.now + deadline
    while ContinuousClock.now < end {
        if let result = try body() { return result }
        _ = try poller.wait(timeout: end - ContinuousClock.now)
    }
    throw Overdue()
}

/// Waits until `body` gives something, while a router does what it does when it is read: it shakes
/// hands, and cuts off. What it receives is thrown away.
func wait<Result>(
    for socket: PolledSocket, serving router: RouterSocket, _ body: () throws -> Result?
) throws -> Result {
    let poller = Poller(waker: try Waker())
    _ = try poller.add(socket)
    _ = try poller.add(router)
    let end = ContinuousClock.now + deadline
    while ContinuousClock.now < end {
        while try router.receive() != nil {}
        if let result = try body() { return result }
        _ = try poller.wait(timeout: end - ContinuousClock.now)
    }
    throw Overdue()
}

struct Overdue: Error {}

extension SocketSettings {
    /// Nothing lingers after a test.
    static var test: SocketSettings {
        var settings = SocketSettings()
        settings.linger = .zero
        settings.reconnectInterval = .milliseconds(10)
        return settings
    }
}

/// A router and a dealer that is connected with it.
struct Pair {
    let context: ZeroMQContext
    let router: RouterSocket
    let dealer: DealerSocket
    let endpoint: Endpoint

    init(
        router routerSettings: SocketSettings = .test, dealer dealerSettings: SocketSettings = .test
    ) throws {
        context = try ZeroMQContext()
        router = try RouterSocket(settings: routerSettings)
        dealer = try DealerSocket(context, settings: dealerSettings)
        endpoint = try router.bind(Endpoint("tcp://127.0.0.1:0"))
        try dealer.connect(endpoint)
    }

    /// Sends from the dealer once its connection stands.
    func send(_ frame: Bytes) throws {
        if try dealer.send(frame) == .sent { return }
        try router.shakeHands(with: dealer)
        _ = try wait(for: dealer, .writable) { try dealer.send(frame) == .sent ? true : nil }
    }

    /// What the router receives next.
    func receive() throws -> RouterInput {
        try wait(for: router) { try router.receive() }
    }

    /// Makes the router know the dealer.
    func greet() throws -> RoutingID {
        try send([1])
        guard case .message(let peer, [1]) = try receive() else { throw Overdue() }
        return peer
    }
}

extension RouterSocket {
    /// Reads until a dealer's connection stands. Nothing else may send meanwhile.
    ///
    /// - Parameters:
    ///   - dealer: The dealer.
    ///   - othersMayEnd: Whether another peer does not read: it may be cut off meanwhile, and connect
    ///     again.
    /// - Throws: `Overdue`, or what the sockets throw.
    func shakeHands(with dealer: DealerSocket, othersMayEnd: Bool = false) throws {
        let poller = Poller(waker: try Waker())
        _ = try poller.add(self)
        let writable = try poller.add(dealer, .writable)
        let end = ContinuousClock.now + deadline
        while ContinuousClock.now < end {
            let readiness = try poller.wait(timeout: end - ContinuousClock.now)
            if readiness.isWritable(writable) { return }
            guard let input = try receive() else { continue }
            if othersMayEnd, case .ended = input { continue }
            Issue.record("\(input) came too early")
        }
        throw Overdue()
    }
}

/// The code of the error that something throws.
func code(of body: () throws -> Void) -> ZeroMQError.Code? {
    do {
        try body()
        return nil
    } catch {
        return (error as? ZeroMQError)?.code
    }
}

/// A socket of libzmq's, to say what our own types cannot.
final class RawSocket {
    private let context = zmq_ctx_new()
    private let socket: UnsafeMutableRawPointer?

    init(
        _ type: Int32, routingID: String? = nil, userName: String? = nil,
        connectingTo endpoint: Endpoint
    ) throws {
        socket = zmq_socket(context, type)
        var linger: Int32 = 0
        zmq_setsockopt(socket, ZMQ_LINGER, &linger, 4)
        if let routingID {
            zmq_setsockopt(socket, ZMQ_ROUTING_ID, routingID, routingID.utf8.count)
        }
        if let userName {
            zmq_setsockopt(socket, ZMQ_PLAIN_USERNAME, userName, userName.utf8.count)
        }
        try #require(zmq_connect(socket, endpoint.description) == 0)
    }

    func send(_ frames: [String]) throws {
        for (index, frame) in frames.enumerated() {
            let flags = index + 1 < frames.count ? ZMQ_SNDMORE : 0
            try #require(zmq_send(socket, frame, frame.utf8.count, flags) >= 0)
        }
    }

    deinit {
        zmq_close(socket)
        zmq_ctx_term(context)
    }
}
