import ConfluxVocabulary
import Dispatch
import Synchronization

/// Serving the lane: taking turns, on this thread or through the executor.
extension StoreCore {
    /// Runs the caller's own job as the one that serves the lane, then whatever came meanwhile.
    @inline(__always)
    func runNow(_ mark: UnsafeMutablePointer<ThreadMark>, _ job: () -> Void) {
        mark.pointee.lanes += 1
        scope.runLane {
            if !isReleased.load(ordering: .relaxed) { job() }
        }
        let isDone = lane.withLock { lane in
            guard lane.waiting.isEmpty else { return false }
            lane.isBusy = false
            return true
        }
        if !isDone { drain() }
        mark.pointee.lanes -= 1
    }

    /// Does what a thread that put a job into the line has to do.
    func serve(_ duty: Lane<S>.Duty, _ mark: UnsafeMutablePointer<ThreadMark>) {
        switch duty {
        case .none: break
        case .serve:
            mark.pointee.lanes += 1
            drain()
            mark.pointee.lanes -= 1
        case .handOver: handOver()
        }
    }

    /// Serves the lane until the line is empty.
    func drain() {
        scope.runLane {
            var jobs: [LaneJob<S>] = []
            while takeTurn(&jobs) {
                for job in jobs { perform(job) }
                jobs.removeAll(keepingCapacity: jobs.capacity <= LaneLimits.keptCapacityMax)
            }
        }
    }

    /// Takes the line, or ends this thread's service if it is empty.
    private func takeTurn(_ jobs: inout [LaneJob<S>]) -> Bool {
        let woken = lane.withLock { lane in
            let woken = lane.take(into: &jobs)
            if jobs.isEmpty { lane.isBusy = false }
            return woken
        }
        for place in woken { place.signal() }
        return !jobs.isEmpty
    }

    /// Gives the executor one run after the other, as long as that falls to this thread.
    func handOver() {
        repeat {
            executor.execute { self.runOnExecutor() }
        } while lane.withLock { $0.handOverReturned() }
    }

    private func runOnExecutor() {
        let mark = ThreadMark.current
        mark.pointee.lanes += 1
        scope.runLane {
            var jobs: [LaneJob<S>] = []
            let woken = lane.withLock { $0.take(into: &jobs) }
            for place in woken { place.signal() }
            for job in jobs { perform(job) }
        }
        mark.pointee.lanes -= 1
        if lane.withLock({ $0.runReturned() }) { handOver() }
    }

    /// Waits while the line is longer than its bound and moves, unless this thread serves a lane.
    func waitForRoom(_ mark: UnsafeMutablePointer<ThreadMark>) {
        guard mark.pointee.lanes == 0,
            let place = lane.withLock({ $0.waitingPlace(above: waitingMax) })
        else { return }
        var seen = count.load(ordering: .relaxed)
        while place.wait(timeout: .now() + LaneLimits.stillnessMax) == .timedOut {
            let moved = count.load(ordering: .relaxed)
            if moved == seen { return }
            seen = moved
        }
    }
}

/// Working on jobs; called by the thread that serves the lane.
extension StoreCore {
    /// Called by the thread that serves the lane.
    func perform(_ job: LaneJob<S>) {
        if isReleased.load(ordering: .relaxed) { return drop(job) }
        switch job {
        case .action(let action): _ = commit(action)
        case .tracked(let action, let tally, let order):
            tally.report(commitTracked(action), order: order)
        case .run(let actions, let through, let completion):
            completion(commit(actions, through: through))
        case .look(let body): body(state, position)
        }
    }

    /// Says of a job that the store was released before its turn.
    func drop(_ job: LaneJob<S>) {
        switch job {
        case .action: break
        case .tracked(_, let tally, let order):
            tally.report(.failed(.storeClosed(S.self)), order: order)
        case .run(_, _, let completion):
            var report = RunReport()
            report.isClosed = true
            completion(report)
        case .look(let body): body(nil, position)
        }
    }

    /// Commits under the next number of the store's own count.
    ///
    /// - Returns: Why the action was refused, if it was.
    @inline(__always)
    func commit(_ action: S.Action) -> (any Error)? {
        let number = nextNumber()
        do {
            try mutations._perform(
                action: action, state: state,
                context: {
                    ActionContext(
                        sequence: number, timestamp: WallClock.now, origin: nil, seed: seed)
                })
            return nil
        } catch {
            return error
        }
    }

    func commitTracked(_ action: S.Action) -> Outcome {
        let context = ActionContext(
            sequence: nextNumber(), timestamp: WallClock.now, origin: nil, seed: seed)
        let receipt = Receipt(
            log: nil, epoch: .none, sequence: context.sequence, timestamp: context.timestamp)
        do {
            try mutations._perform(action: action, state: state, context: { context })
            return .committed(receipt)
        } catch {
            return .failed(.refused(error, receipt: receipt))
        }
    }

    @inline(__always)
    private func nextNumber() -> SequenceNumber {
        let number = count.load(ordering: .relaxed) + 1
        count.store(number, ordering: .relaxed)
        return SequenceNumber(number)
    }

    /// Commits what a log has ordered, passing over what the store has already.
    private func commit(_ actions: [OrderedAction<S>], through: SequenceNumber) -> RunReport {
        var report = RunReport()
        var last = position
        for (index, ordered) in actions.enumerated() {
            if isReleased.load(ordering: .relaxed) {
                report.isClosed = true
                break
            }
            report.completed = index + 1
            guard ordered.context.sequence > last else { continue }
            do {
                try mutations._perform(
                    action: ordered.action, state: state, context: { ordered.context })
            } catch {
                report.refusals.append(RunReport.Refusal(index: index, error: error))
            }
            last = ordered.context.sequence
        }
        if !report.isClosed { last = max(last, through) }
        lastOrdered.store(last.rawValue, ordering: .releasing)
        return report
    }
}
