import CPartner
import Conflux
import ConfluxBuiltins
import ConfluxGateway
import ConfluxNode
import Foundation

/// A counter whose actions have a coding by hand.
struct HandCounter: Model {
    static let name = "hand"
    static let coding = PayloadCoding.compact
    var count = 0

    mutating func apply(_ action: HandAction, _ context: ActionContext) {
        switch action {
        case .increment: count += 1
        case .decrement: count -= 1
        case .add(let amount): count += amount
        }
    }
}

/// The clients of a gateway, in C, and what is dispatched and published for them.
enum GatewayRoles {
    static let topic = "counter/shared"
    static let handTopic = "hand/shared"
    /// Makes this program a gateway.
    static let programVariable = "CONFLUX_BENCH_GATEWAY"

    static func runGateway() async -> Never {
        await Gateway.main("conflux-bench", states: [HostedState(HandCounter.self)])
    }
    private static let request = #"{"store":"counter","dispatch":{"increment":{}}}"#

    private static func check(_ failure: Int32, _ attempt: String) throws {
        guard failure == 0 else {
            throw BenchError("\(attempt): \(String(cString: strerror(failure)))")
        }
    }

    /// A node that increments the counter as fast as possible.
    static func counter(at place: Place, count: Int, isByHand: Bool) async throws {
        guard !isByHand else {
            return try await NodeRoles.produce(at: place, ModelState<HandCounter>.self) { actions in
                var last: DispatchHandle?
                for _ in 0..<count { last = actions.dispatch(.increment) }
                return last
            }
        }
        try await NodeRoles.produce(at: place, CounterState.self) { actions in
            var last: DispatchHandle?
            for _ in 0..<count { last = actions.dispatch(.increment) }
            return last
        }
    }

    /// A plain publisher of messages of the same size.
    static func publisher(count: Int) throws {
        var publisher = gateway_publisher()
        try check(gateway_publisher_open(&publisher), "binding")
        let address = withUnsafeBytes(of: &publisher.address) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        Control.tell(.listening([address]))
        try check(gateway_publisher_await(&publisher), "waiting for a subscription")
        Control.awaitStart()
        try check(gateway_publisher_send(&publisher, topic, UInt64(count)), "publishing")
        // Until the subscriber has everything, and this process is ended.
        try check(gateway_publisher_await(&publisher), "waiting for the end")
    }

    /// Subscribes, and reports when the first action came, when the last one, and in how many messages.
    static func follower(address: String, topic: String, isGateway: Bool, count: Int) throws {
        var (first, last, messages) = (UInt64(0), UInt64(0), UInt64(0))
        try check(
            gateway_follow(
                address, topic, isGateway ? 1 : 0, UInt64(count), { Control.tell(.ready) }, &first,
                &last, &messages), "following")
        Control.tell(.times([first, last, messages]))
    }

    /// Dispatches by DEALER, or, with a window of 1, by REQ. Reports the time of all, or of each.
    static func asker(address: String, count: Int, window: Int) throws {
        let warmUp = window == 1 ? Role.warmUpCount : 20_000
        var times = [UInt64](repeating: 0, count: count)
        func ask(_ count: Int) throws {
            if window == 1 {
                try check(gateway_ask(address, request, UInt64(count), &times), "asking")
            } else {
                try check(
                    gateway_dispatch(address, request, UInt64(count), UInt64(window)), "asking")
            }
        }
        try ask(min(warmUp, count))
        Control.awaitStart()
        let start = monotonicNanoseconds()
        try ask(count)
        let end = monotonicNanoseconds()
        Control.tell(.times(window == 1 ? times : [end - start]))
    }
}
