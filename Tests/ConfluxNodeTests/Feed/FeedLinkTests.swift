import Foundation
import Testing

@testable import ConfluxNode

/// A node that has its feed from another address than the sequencer's own. A link to the sequencer's socket stands for
/// a relay.
struct FeedLinkTests {
    @Test func `a node goes back to its first choice once that can be reached, and misses nothing`()
        async throws
    {
        try await withAddress { address in
            let world = try World(bind: address)
            let relay = "\(address).relay"
            let node = try await world.node {
                $0.feeds = [relay]
                $0.feedRetryPause = .milliseconds(20)
            }
            let events = node.events
            let store = try await node.store(TallyState.self)
            let fallback = try await first(of: events) {
                if case .feedFellBack = $0 { true } else { false }
            }
            guard case .feedFellBack(let former, let present, let message) = fallback else {
                return
            }
            #expect(former == relay && present == world.sequencer.feedAddress)
            #expect(message.contains("nothing listens there"))
            // While it is tried again and again, the feed goes on.
            for _ in 0..<100 { try await store.actions.dispatch(.add(1)).receipt() }
            let path = String(relay.dropFirst("ipc://".count))
            try FileManager.default.createSymbolicLink(
                atPath: path,
                withDestinationPath: String(world.sequencer.feedAddress.dropFirst("ipc://".count)))
            _ = try await first(of: events) { $0 == .feedRestored(to: relay) }
            for _ in 0..<100 { try await store.actions.dispatch(.add(1)).receipt() }
            #expect(store.computed.count == 200)
            await node.close()
            await world.sequencer.stop()
        }
    }

    @Test(arguments: ["nonsense", "tcp://*:1", "tcp://127.0.0.1:0"])
    func `an address that can be no relay's is refused at once`(feed: String) async throws {
        try await withWorld { world in
            let error = await #expect(throws: NodeError.self) {
                _ = try await world.node { $0.feeds = [feed] }
            }
            #expect(error?.code == .invalidAddress)
        }
    }
}
