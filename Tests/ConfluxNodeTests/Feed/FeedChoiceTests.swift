import ConfluxVocabulary
import ConfluxZeroMQ
import Testing

@testable import ConfluxNode

/// Where a node's feed comes from, without sockets.
struct FeedChoiceTests {
    private let own: Endpoint
    private let relays: [Endpoint]
    private let pause = Duration.seconds(30)

    init() throws {
        own = try Endpoint("tcp://10.0.0.1:7401")
        relays = try (2...5).map { try Endpoint("tcp://10.0.0.\($0):7420") }
    }

    private func choice(_ relays: [Endpoint], seed: UInt64 = 1) -> FeedChoice {
        FeedChoice(relays + [own], pause: pause, seed: seed)
    }

    @Test func `nodes share the relays, and each comes to the sequencer's own feed last`() {
        var firsts: [Endpoint: Int] = [:]
        for seed in 0..<1_000 {
            let choice = choice(relays, seed: UInt64(seed))
            firsts[choice.addresses[0], default: 0] += 1
            #expect(choice.addresses.last == own)
            #expect(Set(choice.addresses) == Set(relays + [own]) && choice.addresses.count == 5)
        }
        #expect(firsts.count == 4 && firsts.values.allSatisfy { $0 > 150 }, "\(firsts)")
        #expect(choice([]).addresses == [own])
    }

    @Test func `a fallback is told once, with the reason, and so is the return`() {
        var choice = choice([relays[0]])
        let first = choice.connected(to: relays[0], at: .zero)
        choice.failed("it ended", at: relays[0])
        choice.failed("it is away", at: own)
        let fallback = choice.connected(to: own, at: .seconds(9))
        #expect(first == nil)
        #expect(fallback == .fellBack(from: relays[0], to: own, reason: "it ended"))
        // The connection to the same feed is made again.
        choice.failed("it ended", at: own)
        let again = choice.connected(to: own, at: .seconds(10))
        let back = choice.connected(to: relays[0], at: .seconds(20))
        #expect(again == nil && back == .restored)
        #expect(choice.retryDue == nil)
    }

    @Test func `the first choice is tried again after pauses that grow and differ`() throws {
        var choice = choice([relays[0]], seed: 7)
        _ = choice.connected(to: own, at: .zero)
        var (now, pauses): (Duration, [Duration]) = (.zero, [])
        for _ in 0..<8 {
            let due = try #require(choice.retryDue)
            let taken = [due - .nanoseconds(1), due, due].map { choice.takeRetry(at: $0) }
            #expect(taken == [false, true, false])
            pauses.append(due - now)
            now = due
            choice.retryFailed(at: now)
        }
        for (index, found) in pauses.enumerated() {
            let usual = min(pause * (1 << index), .seconds(300))
            #expect(found >= usual * 0.75 && found <= usual * 1.25, "\(pauses)")
        }
        #expect(Set(pauses.suffix(4)).count == 4)
    }

    @Test func `a first choice that works for short times only is tried less and less often`()
        throws
    {
        var choice = choice([relays[0]], seed: 3)
        var now = Duration.zero
        for round in 0..<4 {
            choice.failed("it ended", at: relays[0])
            _ = choice.connected(to: own, at: now)
            let due = try #require(choice.retryDue)
            #expect(due - now >= pause * (1 << round) * 0.75)
            now = due
            _ = choice.connected(to: relays[0], at: now)
            now += .seconds(1)
        }
        // It has worked for long.
        now += .seconds(600)
        _ = choice.connected(to: own, at: now)
        #expect(try #require(choice.retryDue) - now <= pause * 1.25)
    }

    @Test func `what a welcome announces is read, with spaces in a path`() throws {
        func read(_ text: String, relays: [Endpoint] = []) throws -> [String] {
            try FeedChoice.addresses(announced: text, relays: relays, host: "seq").map(
                \.description)
        }
        #expect(try read("tcp://*:1") == ["tcp://seq:1"])
        #expect(try read("tcp://a:2 tcp://*:1") == ["tcp://a:2", "tcp://seq:1"])
        #expect(try read("ipc:///a b/feed") == ["ipc:///a b/feed"])
        #expect(try read("tcp://a:2 ipc:///a b/c  d") == ["tcp://a:2", "ipc:///a b/c  d"])
        // What the node was told counts, and the sequencer's own feed stays the last.
        #expect(
            try read("tcp://a:2 tcp://*:1", relays: [relays[0]]) == ["\(relays[0])", "tcp://seq:1"])
        #expect(try read("tcp://*:1", relays: [Endpoint("tcp://seq:1")]) == ["tcp://seq:1"])
        #expect(throws: ZeroMQError.self) { try read("nonsense") }
        #expect(throws: ZeroMQError.self) { try read("") }
    }
}
