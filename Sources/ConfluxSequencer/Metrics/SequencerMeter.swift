import ConfluxProtocol
import ConfluxVocabulary
import Synchronization

/// A sequencer's threads publish here what they count and measure. Readers block nobody for long: the lock is held
/// only for a few additions or one copy.
final class SequencerMeter: Sendable {
    fileprivate struct State {
        var metrics = SequencerMetrics()
        /// *Invariant*: no more than there are stores.
        var diverged: Set<StoreName> = []
        var turnAt: Duration
        var logJobSince: Duration?
    }

    private let state: Mutex<State>

    init() {
        state = Mutex(State(turnAt: Moment.now.monotonic))
    }

    func metrics(at now: Duration) -> SequencerMetrics {
        state.withLock { state in
            var metrics = state.metrics
            metrics.divergedStores = state.diverged.count
            metrics.turnAge = now - state.turnAt
            metrics.logJobAge = state.logJobSince.map { now - $0 }
            return metrics
        }
    }

    // MARK: The serving thread

    /// Notes that commits were published.
    func committed(after duration: Duration) {
        state.withLock { $0.metrics.commitLatency.record(duration) }
    }

    /// Publishes the state at the end of a turn.
    ///
    /// - Parameters:
    ///   - gauges: The machine's gauges.
    ///   - tally: The machine's counters.
    ///   - times: When entries were committed.
    ///   - bounds: The levels of the sockets.
    ///   - now: The time, monotonic.
    func publish(
        _ gauges: SequencerGauges, _ tally: SequencerTally, _ times: CommitTimes, bounds: [Bound],
        at now: Duration
    ) {
        let lags = gauges.replicas.lazy.filter { $0.applied > .zero }.map { replica in
            SequencerMetrics.Lag(
                name: replica.name, entries: gauges.last.rawValue - replica.applied.rawValue,
                age: times.age(ofFirstBehind: replica.applied, at: now))
        }.sorted { ($0.entries, $1.name?.text ?? "") > ($1.entries, $0.name?.text ?? "") }
        state.withLock { state in
            state.turnAt = now
            state.metrics.epoch = gauges.epoch
            state.metrics.last = gauges.last
            state.metrics.floor = gauges.floor
            state.metrics.tally = tally
            state.metrics.liveSessions = gauges.liveCount
            state.metrics.awaySessions = gauges.awayCount
            state.metrics.observers = gauges.observerCount
            state.metrics.stores = gauges.storeCount
            state.metrics.timers = gauges.timerCount
            state.metrics.replicas = gauges.replicas.count
            state.metrics.stoppedReplicas = gauges.stoppedReplicaCount
            state.metrics.lagMax =
                lags.first ?? SequencerMetrics.Lag(name: nil, entries: 0, age: .zero)
            state.metrics.lags = Array(
                lags.lazy.filter { $0.name != nil }.prefix(SequencerMetrics.lagsMax))
            state.metrics.isSlowed = gauges.isSlow
            state.metrics.isLogNearlyFull = gauges.isLogNearlyFull
            state.metrics.isClockBehind = gauges.isClockBehind
            state.metrics.retainedBytes = gauges.retainedBytes
            state.metrics.bounds = gauges.bounds + bounds
        }
    }

    // MARK: The log's thread

    func logJobBegins(at now: Duration) {
        state.withLock { $0.logJobSince = now }
    }

    func logJobEnds(at now: Duration, isAppend: Bool) {
        state.withLock { state in
            if isAppend, let since = state.logJobSince {
                state.metrics.appendLatency.record(now - since)
            }
            state.logJobSince = nil
        }
    }

    // MARK: Events, on any thread

    func take(_ event: SequencerEvent) {
        let wall = Moment.now.wall
        state.withLock { state in
            switch event {
            case .serving:
                state.metrics.isServing = true
                state.metrics.isStandingBy = false
                state.metrics.terms += 1
                // Each term finds out anew what holds the log.
                state.metrics.logHold = nil
                // Each term detects divergence anew.
                state.diverged = []
            case .termFailed:
                state.metrics.isServing = false
                state.metrics.logFailures += 1
            case .standingBy(let standing, _): state.metrics.isStandingBy = standing.failure == nil
            case .steppedDown: state.metrics.isServing = false
            case .ended: state.metrics.isServing = false
            case .checkpointSaved:
                state.metrics.checkpointsSaved += 1
                state.metrics.lastCheckpointAt = wall
            case .checkpointFailed: state.metrics.checkpointsFailed += 1
            case .omitted(let kind, let count, _):
                switch NoteLimit.Kind(rawValue: kind) {
                case .unreadable: state.metrics.unreadableFrames += UInt64(count)
                case .historyLost: state.metrics.historyLosses += UInt64(count)
                case .challenged, .sourcePassedOver, .joined, .left, nil: break
                }
            case .authorized, .authorizationFailed: break
            case .note(let note): state.take(note, at: wall)
            }
        }
    }
}

extension SequencerMeter.State {
    fileprivate mutating func take(_ note: SequencerNote, at wall: Timestamp) {
        switch note {
        case .unreadable: metrics.unreadableFrames += 1
        case .historyLost: metrics.historyLosses += 1
        case .snapshotTaken:
            metrics.snapshotsTaken += 1
            metrics.lastSnapshotAt = wall
        case .snapshotFailed: metrics.snapshotsFailed += 1
        case .clock(.jumped): metrics.clockJumps += 1
        case .logNearlyFull(let hold): metrics.logHold = hold
        case .logHasRoom: metrics.logHold = nil
        case .diverged(let store, _):
            if diverged.insert(store).inserted { metrics.divergences += 1 }
        case .converged(let store, _), .dropped(let store, _), .upgraded(let store, _):
            diverged.remove(store)
        default: break
        }
    }
}
