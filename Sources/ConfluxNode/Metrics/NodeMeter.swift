import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import Synchronization

/// Collects what the threads of a node count and measure. Readers hold up nobody: the lock is held for a few additions,
/// or for one copy.
package final class NodeMeter: Sendable {
    fileprivate struct Content {
        var metrics = NodeMetrics()
        var linkBounds: [Bound] = []
        var waitingOutcomes: Bound?
        var turnAt: Duration
        var applyJobSince: Duration?
    }

    /// How often each thread publishes its status. No thread waits longer than this.
    static let publishInterval = Duration.seconds(1)

    private let state: Mutex<Content>

    package init() {
        state = Mutex(Content(turnAt: Moment.now.monotonic))
    }

    func metrics(at now: Duration) -> NodeMetrics {
        state.withLock { state in
            var metrics = state.metrics
            metrics.bounds = state.linkBounds + (state.waitingOutcomes.map { [$0] } ?? [])
            metrics.turnAge = now - state.turnAt
            metrics.applyJobAge = state.applyJobSince.map { now - $0 }
            return metrics
        }
    }

    // MARK: The thread of the link

    func publish(_ machine: ReplicaMachine, at now: Duration) {
        let bounds = machine.bounds
        state.withLock { state in
            state.turnAt = now
            state.metrics.isConnected = machine.isConnected
            state.metrics.epoch = machine.epoch
            state.metrics.last = machine.remoteLast
            state.metrics.applied = machine.applied
            state.metrics.unsettled = machine.unsettledCount
            state.metrics.stopped = machine.stoppedCount
            state.linkBounds = bounds
        }
    }

    func submitted(_ count: Int) {
        state.withLock { $0.metrics.actions += UInt64(count) }
    }

    // MARK: The thread that applies

    func jobBegins(at now: Duration) {
        state.withLock { $0.applyJobSince = now }
    }

    func jobEnds() {
        state.withLock { $0.applyJobSince = nil }
    }

    func publish(_ applier: Applier) {
        let catchingUp = applier.catchingUpCount
        let waiting = Bound(
            "waitingOutcomes", applier.waitingOutcomeCount, of: applier.waitingOutcomesMax)
        state.withLock { state in
            state.metrics.catchingUp = catchingUp
            state.waitingOutcomes = waiting
        }
    }

    /// Counts actions that were given their outcomes.
    ///
    /// - Parameters:
    ///   - count: How many actions.
    ///   - kind: The most frequent outcome.
    ///   - others: How many of them had another outcome.
    ///   - duration: How long it took; nil if it was not measured.
    func told(
        _ count: Int, _ kind: NodeMetrics.OutcomeKind,
        except others: [NodeMetrics.OutcomeKind: Int], after duration: Duration?
    ) {
        state.withLock { state in
            var rest = count
            for (kind, count) in others {
                state.metrics.outcomes[kind, default: 0] += UInt64(count)
                rest -= count
            }
            state.metrics.outcomes[kind, default: 0] += UInt64(rest)
            if let duration {
                state.metrics.receiptLatency.record(duration, count: UInt64(count))
            }
        }
    }

    // MARK: Events, from any thread

    func take(_ event: NodeEvent) {
        state.withLock { state in
            switch event {
            case .joined: state.metrics.isConnected = true
            case .disconnected:
                state.metrics.isConnected = false
                state.metrics.disconnections += 1
            case .reconnected:
                state.metrics.isConnected = true
                state.resync(.reconnected)
            case .connectionRefused: state.metrics.refusedConnections += 1
            case .historyLost: state.resync(.historyLost)
            case .sessionForgotten: state.resync(.sessionForgotten)
            case .missed: state.resync(.missed)
            case .logDamaged: state.resync(.logDamaged)
            case .diverged: state.metrics.divergences += 1
            case .closed: state.metrics.isConnected = false
            case .sequencerNotServing, .heldUp, .unreachable, .staleSequencer, .storeDropped,
                .storeStopped, .crashJournal, .bridgeStopped, .unreadableFrame, .upgradeFailed,
                .tickFailed, .feedFellBack, .feedRestored:
                break
            }
        }
    }
}

extension NodeMeter.Content {
    fileprivate mutating func resync(_ reason: NodeMetrics.ResyncReason) {
        metrics.resyncs[reason, default: 0] += 1
    }
}

extension Applier {
    /// The number of stores and bridged states that are not attached yet, and have not stopped.
    fileprivate var catchingUpCount: Int {
        states.values.reduce(0) { sum, stores in
            sum + stores.replicas.values.count { $0.progress.stop == nil && !$0.hasCaughtUp }
                + (stores.isBridged && stores.locals.phase != .attached ? 1 : 0)
        }
    }
}
