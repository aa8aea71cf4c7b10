import ConfluxVocabulary

/// A store's part of what a log gives to several stores at one place: the actions of a transaction or of an event.
///
/// The stores' lanes meet there (``Rendezvous``). What the stores send to observers meanwhile is withheld. So all of them
/// have changed before any observer is called, and an observer sees all of it or nothing.
// Sendable: it is used where the lanes meet, and then in its store's lane.
package class JointRun: @unchecked Sendable {
    fileprivate let lane: Lane

    fileprivate init(_ lane: Lane) { self.lane = lane }

    /// Changes the store. Called where the lanes meet.
    fileprivate func apply() {}
    /// Notifies the observers, and reports. Called in the lane, before anything else that it does.
    fileprivate func tell() {}

    /// Gives each store its part, behind what is in its line.
    ///
    /// A node calls it from the thread from which it delivers. So any two meetings come in the same order in all
    /// lanes that they share.
    package static func deliver(_ runs: [JointRun]) {
        let meeting = Rendezvous(count: runs.count) { _ in
            for run in runs { run.apply() }
            for run in runs { run.lane.putFirst { run.tell() } }
        }
        let mark = ThreadMark.outsideModels
        for run in runs { run.lane.putInLine(.hold(meeting), mark) }
    }
}

// Sendable: as the class that it refines.
private final class TypedJointRun<S: State>: JointRun, @unchecked Sendable {
    private let core: StoreCore<S>
    /// Keeps the state, since a lane that meets others may be closed meanwhile.
    private let state: S?
    private let run: OrderedRun<S>
    private let through: StoreVersion
    private let completion: @Sendable (RunReport) -> Void
    private var report = RunReport.closed
    private var withheld: [ObserverLane] = []

    init(
        _ core: StoreCore<S>, _ run: OrderedRun<S>, through: StoreVersion,
        _ completion: @escaping @Sendable (RunReport) -> Void
    ) {
        (self.core, self.run, self.through) = (core, run, through)
        self.completion = completion
        state = core.kept
        super.init(core)
    }

    override func apply() {
        guard state != nil else { return }
        let mark = ThreadMark.current
        let former = (mark.pointee.isWithholding, mark.pointee.withheld)
        (mark.pointee.isWithholding, mark.pointee.withheld) = (true, [])
        core.run(mark) {
            FlowLock.holding(nil) {
                // Used by this thread alone.
                nonisolated(unsafe) var done = RunReport.closed
                core.perform(run, through: through) { done = $0 }
                report = done
            }
        }
        withheld = mark.pointee.withheld
        (mark.pointee.isWithholding, mark.pointee.withheld) = former
    }

    override func tell() {
        for lane in withheld { lane.kick(ThreadMark.current) }
        withheld = []
        completion(report)
    }
}

extension StoreCore {
    /// Makes this store's part of what several stores apply at one place.
    ///
    /// - Parameters:
    ///   - run: As for ``deliver(_:through:completion:)``.
    ///   - through: Likewise.
    ///   - completion: Called once, in the lane, when all stores have changed and this one's observers were notified; or
    ///     on the thread that finds the store released.
    /// - Returns: The part, for ``JointRun/deliver(_:)``.
    package func joint(
        _ run: OrderedRun<S>, through: StoreVersion,
        completion: @escaping @Sendable (RunReport) -> Void
    ) -> JointRun {
        TypedJointRun(self, run, through: through, completion)
    }
}
