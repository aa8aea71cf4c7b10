import Testing

@testable import ConfluxZeroMQ

struct AddressTests {
    private let first: Endpoint
    private let second: Endpoint
    private let other: Endpoint

    init() throws {
        first = try Endpoint("tcp://127.0.0.1:1")
        second = try Endpoint("tcp://127.0.0.1:2")
        other = try Endpoint("tcp://127.0.0.1:3")
    }

    /// Calls `moveOn()` in a function that `#expect` can call.
    private func moveOn(_ round: inout AddressRound) -> Bool { round.moveOn() }

    @Test func `addresses take turns, with a pause after all of them`() {
        var round = AddressRound([first, second])
        #expect(round.current == first)
        #expect(moveOn(&round) == false)
        #expect(round.current == second)
        #expect(moveOn(&round) == true)
        #expect(round.current == first)
    }

    @Test func `a heard message resets the count of failures`() {
        var round = AddressRound([first, second])
        #expect(moveOn(&round) == false)
        round.heard()
        #expect(moveOn(&round) == false)
        #expect(moveOn(&round) == true)
    }

    @Test func `an address from a redirect is tried once, and counts as one`() {
        var round = AddressRound([first, second])
        round.follow(other)
        #expect(round.current == other)
        #expect(moveOn(&round) == false)
        #expect(round.current == second)
        #expect(moveOn(&round) == true)
        #expect(round.current == first)
    }

    @Test func `a single address is tried again and again, each time after a pause`() {
        var round = AddressRound([first])
        #expect(moveOn(&round) == true)
        #expect(moveOn(&round) == true)
        #expect(round.current == first)
        #expect(round.failureCount == 2)
    }

    @Test func `a list of addresses can be read as it is written`() throws {
        #expect(try Endpoint.list("tcp://a:7400") == [Endpoint("tcp://a:7400")])
        #expect(
            try Endpoint.list("tcp://a:7400,tcp://b:7400")
                == [Endpoint("tcp://a:7400"), Endpoint("tcp://b:7400")])
        #expect(try Endpoint.list("a:1,b:2") == [Endpoint("tcp://a:1"), Endpoint("tcp://b:2")])
    }

    @Test(
        arguments: [
            "", ",", "tcp://a:1,", "tcp://a:1,b",
            Array(repeating: "tcp://a:1", count: 17).joined(separator: ","),
        ])
    func `text that is not a list of addresses is refused`(_ text: String) {
        #expect(code { _ = try Endpoint.list(text) } == .invalidEndpoint)
    }

    /// Waits until the dealer is connected with the router, whatever failed before.
    private func connect(_ dealer: ClientSocket, with router: RouterSocket) throws {
        try wait(for: dealer, serving: router) {
            while let event = try dealer.receive() { if event == .connected { return () } }
            return nil
        }
    }

    @Test func `a second address is reached when nobody listens at the first`() throws {
        let pair = try Pair()
        let dealer = try ClientSocket(.dealer, settings: .test)
        let closed = try RouterSocket(settings: .test)
        let nobody = try closed.bind(Endpoint("tcp://127.0.0.1:0"))
        closed.close()
        try dealer.connect(toAnyOf: [nobody, pair.endpoint])
        try connect(dealer, with: pair.router)
        #expect(dealer.endpoint == pair.endpoint)
    }

    @Test func `a client moves to another address, and back if nobody listens there`() throws {
        let here = try Pair()
        let there = try RouterSocket(settings: .test)
        let place = try there.bind(Endpoint("tcp://127.0.0.1:0"))
        try connect(here.dealer, with: here.router)
        try here.dealer.move(to: place)
        try connect(here.dealer, with: there)
        #expect(here.dealer.endpoint == place)
        there.close()
        try connect(here.dealer, with: here.router)
        #expect(here.dealer.endpoint == here.endpoint)
    }

    @Test func `messages from the former address no longer count after a move`() throws {
        let here = try Pair()
        let there = try RouterSocket(settings: .test)
        let place = try there.bind(Endpoint("tcp://127.0.0.1:0"))
        let route = try here.greet()
        for byte: UInt8 in 1...2 { #expect(try here.router.send([byte][...], to: route) == .sent) }
        // Both messages have arrived by then.
        #expect(try here.hear() == [1])
        try here.dealer.move(to: place)
        try wait(for: here.dealer, serving: there) {
            while let event = try here.dealer.receive() {
                if case .message = event { Issue.record("it is given \(event)") }
                if event == .connected { return () }
            }
            return nil
        }
    }

    @Test func `a client continues with the next address when its owner wants it`() throws {
        let one = try Pair()
        let two = try Pair()
        let dealer = try ClientSocket(.dealer, settings: .test)
        try dealer.connect(toAnyOf: [one.endpoint, two.endpoint])
        try connect(dealer, with: one.router)
        dealer.moveOn()
        try connect(dealer, with: two.router)
        #expect(dealer.endpoint == two.endpoint)
        // A client with only one address stays where it is.
        try connect(one.dealer, with: one.router)
        one.dealer.moveOn()
        #expect(one.dealer.isConnected)
    }
}
