import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker
import Synchronization

/// What the sequencer and this gateway say of themselves, for everybody who watches.
///
/// The sequencer is asked at most once a second, and only while somebody wants to know: everyone who asks meanwhile gets
/// the same answer. So twenty pages cost it what one does. Safe on any thread.
final class Overview: Sendable {
    /// How long an answer is good for.
    static let age = Duration.seconds(1)
    /// How long the sequencer may take.
    static let patience = Duration.seconds(2)
    /// The most nodes and the most stores of an answer. *At the bound* those that lag most, and the first stores by name,
    /// are told, and how many there are.
    static let rowsMax = 1_000

    private struct State {
        var newest: (bytes: [UInt8], at: ContinuousClock.Instant)?
        /// Who waits for the answer that is on its way; nil if none is.
        var waiting: [@Sendable ([UInt8]) -> Void]?
    }

    private let node: Node
    private let address: String
    private let ring: CommitRing
    private let stores: @Sendable () -> [any AnyServedStore]
    private let mayChange: Bool
    private let state = Mutex(State())

    /// - Parameters:
    ///   - node: The gateway's node.
    ///   - address: The sequencer's address, as it was given.
    ///   - ring: Has the counts of entries.
    ///   - mayChange: Whether whoever reads it may change something, too.
    ///   - stores: The stores.
    init(
        of node: Node, at address: String, _ ring: CommitRing, mayChange: Bool,
        stores: @escaping @Sendable () -> [any AnyServedStore]
    ) {
        (self.node, self.address, self.ring) = (node, address, ring)
        (self.mayChange, self.stores) = (mayChange, stores)
    }

    /// Gives an answer that is at most a second old.
    func read(_ reply: @escaping @Sendable ([UInt8]) -> Void) {
        let (present, mustAsk) = state.withLock { state -> ([UInt8]?, Bool) in
            if let newest = state.newest, ContinuousClock.now - newest.at < Self.age {
                return (newest.bytes, false)
            }
            defer { state.waiting = (state.waiting ?? []) + [reply] }
            return (nil, state.waiting == nil)
        }
        if let present { return reply(present) }
        guard mustAsk else { return }
        Task {
            let bytes = await sample()
            let waiting = state.withLock { state in
                defer { state.waiting = nil }
                state.newest = (bytes, .now)
                return state.waiting ?? []
            }
            for reply in waiting { reply(bytes) }
        }
    }

    private func sample() async -> [UInt8] {
        var fields: JSONFields = [
            "gateway": gateway(), "mayChange": mayChange, "time": Timestamp.current.iso8601,
            "version": ConfluxRelease.version,
        ]
        do throws(NodeError) {
            let status = try await node.sequencerStatus(patience: Self.patience)
            let places = try await node.core.ask(.sequencers, patience: Self.patience)
            var sequencers: [SequencerPlace] = []
            if case .sequencers(let list) = places.body {
                sequencers = list.filter { !$0.address.isEmpty }
            }
            fields["sessionCount"] = status.sessions.count
            fields["storeCount"] = status.stores.count
            fields["sequencer"] = StatusFields.json(
                Self.cut(status), of: sequencers, at: address)
        } catch {
            let failure = CommandFailure(error)
            fields["problem"] = JSONObject(["code": failure.code, "detail": failure.message])
        }
        return Array(JSONObject(fields).json.description.utf8)
    }

    /// Leaves out nodes without a name that have left, and what is too much.
    private static func cut(_ status: SequencerStatus) -> SequencerStatus {
        var status = status
        status.sessions.removeAll { $0.name == nil && !$0.isLive }
        if status.sessions.count > rowsMax {
            status.sessions.sort {
                ($0.isLive ? 0 : 1, $0.applied) < ($1.isLive ? 0 : 1, $1.applied)
            }
            status.sessions = Array(status.sessions.prefix(rowsMax))
        }
        status.stores = Array(status.stores.prefix(rowsMax))
        return status
    }

    private func gateway() -> JSONObject {
        let metrics = node.metrics()
        let counts = ring.counts.present
        let stores = stores().map { store -> JSONObject in
            let (state, ending) = store.records.present
            return JSONObject([
                "bytes": state?.body.count, "ended": ending?.reason, "sequence": state?.position,
                "store": store.name,
            ])
        }
        let bounds = metrics.bounds.map { StatusFields.json($0) }
        let targets = counts.targets.sorted { $0.value > $1.value }.prefix(Self.rowsMax)
            .map { JSONObject(["actions": $0.value, "target": "\($0.key)"]) }
        return JSONObject([
            "applied": metrics.applied, "bounds": bounds, "connected": metrics.isConnected,
            "entries": counts.total, "faults": metrics.livenessFaults + metrics.readinessFaults,
            "last": metrics.last, "latencies": Self.latencies(metrics.receiptLatency),
            "stores": stores, "targets": targets, "unsettled": metrics.unsettled,
        ])
    }

    /// How often each time was measured from a dispatch of this gateway until its receipt, cumulative, in microseconds.
    private static func latencies(_ histogram: LatencyHistogram) -> JSONObject {
        JSONObject([
            "bounds": LatencyHistogram.bounds.map { Int($0 / .microseconds(1)) },
            "counts": histogram.counts.map { UInt64($0) },
        ])
    }
}
