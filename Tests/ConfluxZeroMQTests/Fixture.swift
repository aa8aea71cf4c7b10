import ConfluxVocabulary
import ConfluxZeroMQ
import Testing

/// How long a test waits for something that must happen.
let deadline = Duration.seconds(20)

/// Waits until `body` returns a value. Calls it again whenever one of the sockets becomes ready, and also after each
/// `pause` if there is one, for changes that none of our sockets reports.
func wait<Result>(
    for sockets: PolledSocket..., pause: Duration? = nil, body: () throws -> Result?
) throws -> Result {
    let poller = Poller(waker: try Waker())
    let tokens = try sockets.map { try poller.add($0) }
    defer { tokens.forEach { poller.remove($0) } }
    let end = ContinuousClock.now + deadline
    while ContinuousClock.now < end {
        if let result = try body() { return result }
        _ = try poller.wait(timeout: pause ?? (end - ContinuousClock.now))
    }
    throw Overdue()
}

/// Waits until `body` returns a value, while the router does what a read makes it do: it makes
/// handshakes and cuts peers off. Received messages are discarded.
func wait<Result>(
    for socket: PolledSocket, serving router: RouterSocket, _ body: () throws -> Result?
) throws -> Result {
    try wait(for: socket, router) {
        while try router.receive() != nil {}
        return try body()
    }
}

struct Overdue: Error {}

extension SocketSettings {
    /// Settings without linger after a test.
    static var test: SocketSettings {
        var settings = SocketSettings()
        settings.linger = .zero
        settings.reconnectInterval = .milliseconds(10)
        return settings
    }
}

extension ClientSocket {
    /// The next message, if there is one. Other events are skipped.
    func message() throws -> Bytes? {
        while let event = try receive() {
            if case .message(let body) = event { return body }
        }
        return nil
    }

    /// Why the connection failed, or nil.
    func failure() throws -> ConnectionFailure? {
        while let event = try receive() {
            if case .failed(let failure, _) = event { return failure }
        }
        return nil
    }
}

/// A router, and a dealer that connects to it.
final class Pair {
    let router: RouterSocket
    let dealer: ClientSocket
    let endpoint: Endpoint

    init(
        router routerSettings: SocketSettings = .test, dealer dealerSettings: SocketSettings = .test
    ) throws {
        router = try RouterSocket(settings: routerSettings)
        dealer = try ClientSocket(.dealer, settings: dealerSettings)
        endpoint = try router.bind(Endpoint("tcp://127.0.0.1:0"))
        try dealer.connect(endpoint)
    }

    /// Sends from the dealer, once its connection is established.
    func send(_ frame: Bytes) throws {
        if try dealer.send(frame) == .sent { return }
        try router.shakeHands(with: dealer)
        try #require(try dealer.send(frame) == .sent)
    }

    /// The router's next input, while the dealer writes its pending bytes.
    func receive() throws -> RouterInput {
        try wait(for: router, dealer) {
            if dealer.hasUnsent {
                while let event = try dealer.receive() { Issue.record("\(event) came too early") }
            }
            return try router.receive()
        }
    }

    /// The dealer's next message, while the router writes its pending bytes.
    func hear() throws -> Bytes {
        try wait(for: dealer, serving: router) { try dealer.message() }
    }

    /// Makes the dealer known to the router.
    func greet() throws -> RoutingID {
        try send([1])
        guard case .message(let peer, [1]) = try receive() else { throw Overdue() }
        return peer
    }
}

extension RouterSocket {
    /// Reads until a dealer's connection is established. Nobody else may send meanwhile.
    ///
    /// - Parameters:
    ///   - dealer: The dealer.
    ///   - othersMayEnd: Whether another peer doesn't read. That peer may be cut off meanwhile, and reconnect.
    /// - Throws: `Overdue`, or an error of the sockets.
    func shakeHands(with dealer: ClientSocket, othersMayEnd: Bool = false) throws {
        try wait(for: self, dealer) {
            while !dealer.isConnected, let event = try dealer.receive() {
                if case .failed(let failure, _) = event { Issue.record("\(failure)") }
            }
            if dealer.isConnected { return () }
            guard let input = try receive() else { return nil }
            if case .ended = input, othersMayEnd { return nil }
            Issue.record("\(input) came too early")
            return nil
        }
    }
}

/// The code of the error that a function throws.
func code(of body: () throws -> Void) -> ZeroMQError.Code? {
    do {
        try body()
        return nil
    } catch {
        return (error as? ZeroMQError)?.code
    }
}
