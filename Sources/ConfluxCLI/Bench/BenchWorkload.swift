import ConfluxNode
import ConfluxVocabulary
import ConfluxWorker
import Foundation

/// The state of the actions. It has no stores, so nobody applies them.
final class BenchState: BridgedState {
    typealias Action = Data
    typealias Mutations = BenchMutations

    static let name = "conflux-bench"
    static let coding = PayloadCoding.compact
}

struct BenchMutations: Mutations {
    func commit(action: Data, state: BenchState) {}
}

/// The work of `conflux bench`: actions one at a time, then a stream of them.
struct BenchWorkload: Sendable {
    let payloadBytes: Int
    let singleCount: Int
    let streamCount: Int
    let inFlightMax: Int

    /// The most bytes of a stream's actions that wait for their receipts: half of what a node's outbox holds.
    private static let inFlightBytesMax = 4 << 20
    /// One of this many actions of a stream is timed.
    private static let sampleSpacing = 16
    /// How many actions are dispatched first and not counted.
    private static let warmUpCount = 100

    /// Dispatches all actions.
    ///
    /// - Throws: ``CommandFailure`` if an action got no receipt, or the wait was ended.
    func run(
        by connection: Connection, _ progress: ProgressLine
    ) async throws(CommandFailure) -> BenchFigures {
        let payload = Data(repeating: UInt8(ascii: "x"), count: payloadBytes)
        let core = connection.core
        guard let name = Name(BenchState.name) else { preconditionFailure("a name that is none") }
        try await failing { () async throws(NodeError) in
            try await core.bridge(BenchState.self, name, OpeningTime(connection.timeout))
        }
        let actions = Store<BenchState>.actions
        let watchdog = Watchdog(connection.timeout) { core.leave(timeout: .zero) }
        defer { watchdog.cancel() }
        func submit() -> DispatchHandle { actions.dispatch(payload) }
        func tell(_ count: Int) {
            progress.show("\(count) of \(singleCount + streamCount) actions")
        }

        var single: [Duration] = []
        for index in 0..<(singleCount > 0 ? Self.warmUpCount + singleCount : 0) {
            let start = ContinuousClock.now
            try await settle(submit(), at: core.address, watchdog)
            if index >= Self.warmUpCount { single.append(ContinuousClock.now - start) }
            tell(single.count)
        }

        let windowMax = max(1, min(inFlightMax, Self.inFlightBytesMax / payloadBytes))
        var stream: [Duration] = []
        var window: [(handle: DispatchHandle, start: ContinuousClock.Instant?)] = []
        let start = ContinuousClock.now
        for index in 0..<streamCount {
            window.append((submit(), index % Self.sampleSpacing == 0 ? .now : nil))
            guard window.count == windowMax else { continue }
            // It settles half of them, so that both sides always have work.
            let rest = windowMax / 2
            for (handle, start) in window.prefix(windowMax - rest) {
                try await settle(handle, at: core.address, watchdog)
                if let start { stream.append(ContinuousClock.now - start) }
            }
            window.removeFirst(windowMax - rest)
            tell(singleCount + index)
        }
        for (handle, start) in window {
            try await settle(handle, at: core.address, watchdog)
            if let start { stream.append(ContinuousClock.now - start) }
        }
        return BenchFigures(
            payloadBytes: payloadBytes, single: single, streamCount: streamCount,
            streamTime: ContinuousClock.now - start, streamSamples: stream, inFlight: windowMax)
    }

    /// Waits for an action's receipt.
    private func settle(
        _ handle: DispatchHandle, at address: String, _ watchdog: Watchdog
    ) async throws(CommandFailure) {
        do throws(DispatchError) {
            if handle.outcome == nil { watchdog.arm() }
            defer { watchdog.disarm() }
            try await handle.receipt()
        } catch {
            guard watchdog.hasFired else { throw CommandFailure(error) }
            throw CommandFailure(
                .timedOut,
                """
                No receipt came from \(address) within \(watchdog.timeout). See what keeps the \
                sequencer busy with `conflux status`, or give more time with --timeout.
                """)
        }
    }
}
