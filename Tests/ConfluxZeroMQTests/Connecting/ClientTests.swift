import ConfluxVocabulary
import Foundation
import Testing

@testable import ConfluxZeroMQ

/// A socket that connects: to which addresses, how often it tries, and what it reports.
@Suite struct ClientTests {
    @Test
    func `a client reports each attempt, and reconnects when its connection breaks`()
        throws
    {
        let pair = try Pair()
        func events(until isLast: (ClientEvent) -> Bool) throws -> [ClientEvent] {
            var events: [ClientEvent] = []
            return try wait(for: pair.dealer, serving: pair.router) {
                while let event = try pair.dealer.receive() {
                    events.append(event)
                    if isLast(event) { return events }
                }
                return nil
            }
        }
        #expect(try events { $0 == .connected } == [.connecting, .accepted, .connected])
        #expect(pair.dealer.isConnected)
        pair.router.close()
        let failure = try wait(for: pair.dealer) { try pair.dealer.failure() }
        #expect(failure == .ended)
        #expect(try pair.dealer.send([1]) == .wouldBlock)
        // First nobody listens, and then a router does.
        #expect(try wait(for: pair.dealer) { try pair.dealer.failure() } == .refused)
        let successor = try RouterSocket(settings: .test)
        try successor.bind(pair.endpoint)
        try wait(for: pair.dealer, serving: successor) {
            while let event = try pair.dealer.receive() { if event == .connected { return () } }
            return nil
        }
        #expect(try pair.dealer.send([2]) == .sent)
        guard case .message(_, [2]) = try wait(for: successor, body: { try successor.receive() })
        else { throw Overdue() }
    }

    @Test func `pending messages are sent before a client closes`() throws {
        var settings = SocketSettings.test
        settings.linger = .seconds(10)
        let pair = try Pair(dealer: settings)
        _ = try pair.greet()
        let frame = [UInt8](repeating: 3, count: 1 << 20)
        // More than the system takes at once.
        let router = Handover(pair.router)
        for _ in 0..<16 { #expect(try pair.dealer.send(frame) == .sent) }
        #expect(pair.dealer.hasUnsent)
        let reader = try NamedThread("reader") {
            var count = 0
            do {
                try wait(for: router.value) {
                    while let input = try router.value.receive() {
                        if case .message(_, let body) = input, body.count == 1 << 20 { count += 1 }
                        if case .ended = input { return () }
                    }
                    return nil
                }
            } catch {
                Issue.record("\(error)")
            }
            if count != 16 { Issue.record("\(count) messages arrived") }
        }
        pair.dealer.close()
        reader.join()
    }

    @Test func `a host without an address is reported, and its lookup blocks nobody`() throws {
        let dealer = try ClientSocket(.dealer, settings: .test)
        try dealer.connect(Endpoint("tcp://no-such-host.invalid:7400"))
        let failure = try wait(for: dealer) { try dealer.failure() }
        guard case .unresolvable = failure else {
            Issue.record("\(failure)")
            return
        }
    }

    @Test func `a name is looked up, and its addresses are tried one after the other`() throws {
        let pair = try Pair()
        let dealer = try ClientSocket(.dealer, settings: .test)
        try dealer.connect(Endpoint(host: "localhost", port: try #require(pair.endpoint.port)))
        try pair.router.shakeHands(with: dealer)
    }

    @Test func `a client connects to a path, and reports if nobody listens there`() throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("conflux-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let endpoint = try Endpoint("ipc://\(folder.path)/socket")
        let dealer = try ClientSocket(.dealer, settings: .test)
        try dealer.connect(endpoint)
        #expect(try wait(for: dealer) { try dealer.failure() } == .refused)
        let router = try RouterSocket(settings: .test)
        try router.bind(endpoint)
        try wait(for: dealer, serving: router) {
            while let event = try dealer.receive() { if event == .connected { return () } }
            return nil
        }
        #expect(try dealer.send([4]) == .sent)
        guard case .message(_, [4]) = try wait(for: router, body: { try router.receive() })
        else { throw Overdue() }
        router.close()
    }

    @Test func `unread messages are bounded in bytes`() throws {
        let pair = try Pair()
        _ = try pair.greet()
        let frame = [UInt8](repeating: 0, count: 1 << 20)
        var sent = 0
        while sent < 1_000, try pair.dealer.send(frame) == .sent { sent += 1 }
        // The first messages went into the system's buffers.
        #expect((64..<100).contains(sent))
        #expect(pair.dealer.isConnected)
        // Reading makes room.
        while try pair.dealer.send(frame) != .sent {
            guard case .message = try pair.receive() else { throw Overdue() }
        }
    }

    @Test func `pauses between attempts double up to a bound, and are longer after a refusal`() {
        var settings = SocketSettings.test
        settings.reconnectInterval = .milliseconds(100)
        settings.reconnectIntervalMax = .milliseconds(500)
        settings.refusedIntervalMax = .seconds(5)
        var pause = ReconnectPause(settings)
        for least in [100, 200, 400, 500, 500] {
            let next = pause.next(after: .refused)
            #expect(next >= .milliseconds(least) && next < .milliseconds(least + 100))
        }
        for seconds in [1, 2, 4, 5, 5] {
            #expect(pause.next(after: .denied(status: 400)) == .seconds(seconds))
        }
        pause.reset()
        #expect(pause.next(after: .ended) < .milliseconds(200))
        #expect(pause.next(after: .stranger) == .seconds(1))
    }
}
