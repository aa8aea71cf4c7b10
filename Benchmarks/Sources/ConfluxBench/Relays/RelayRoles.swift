import ConfluxNode
import Foundation

/// A node with one action in flight, and subscribers in the same process, so that both have one clock.
enum RelayRoles {
    /// From one action to the next: longer than the slowest shape takes. So all shapes have one rate, and what the
    /// sequencer does by time is the same share of each action.
    private static let pace = Duration.milliseconds(25)

    static func audience(at place: Place, feeds: [String], subscribers: Int, count: Int)
        async throws
    {
        NodeRoles.raiseDescriptors()
        let node = try await Node.connect(to: place.address, settings: try place.nodeSettings)
        try await node.bridge(FrameState<OpaqueRecord>.self)
        let readers = try (0..<subscribers).map { try FeedReader(to: feeds[$0 % feeds.count]) }
        // Each has received a beat.
        try awaitAll(readers, 1)
        Control.awaitStart()
        var action = OpaqueRecord(bytes: Role.payloadBytes)
        var times: [UInt64] = []
        let clock = ContinuousClock()
        let began = clock.now
        for index in 0..<count {
            try await clock.sleep(until: began + pace * index)
            action.write(producer: 0, index: index)
            let start = monotonicNanoseconds()
            let receipt = try await Store<FrameState<OpaqueRecord>>.actions.dispatch(action)
                .receipt()
            try awaitAll(readers, receipt.sequence.rawValue)
            times.append(monotonicNanoseconds() - start)
        }
        Control.tell(.times(times))
        await node.close()
    }

    /// Reads until every reader has an entry.
    private static func awaitAll(_ readers: [FeedReader], _ sequence: UInt64) throws {
        var waiting = readers.filter { ($0.last ?? 0) < sequence }
        while !waiting.isEmpty {
            var items = waiting.map {
                pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0)
            }
            guard poll(&items, nfds_t(items.count), 10_000) > 0 else {
                throw BenchError("\(waiting.count) subscribers do not get entry \(sequence)")
            }
            for (index, item) in items.enumerated() where item.revents != 0 {
                try waiting[index].read()
            }
            waiting.removeAll { ($0.last ?? 0) >= sequence }
        }
    }
}
