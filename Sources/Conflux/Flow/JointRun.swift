import ConfluxVocabulary
import Synchronization

/// A store's part of what a log gives to several stores at one place: the actions of a transaction or of an event.
///
/// The stores' lanes meet there (``Rendezvous``). What the stores send to observers meanwhile is withheld
/// (``Withholding``). So all of them have changed before any observer is called, and an observer sees all of it or
/// nothing. Middleware sees one store after the other.
// Sendable: it is used where the lanes meet, and then in its store's lane.
package class JointRun: @unchecked Sendable {
    fileprivate let lane: Lane
    fileprivate let scope: Scope

    fileprivate init(_ lane: Lane, _ scope: Scope) { (self.lane, self.scope) = (lane, scope) }

    /// The channel of its state.
    fileprivate var channel: any StateChannel { preconditionFailure("a joint run has a state") }
    /// Changes the store. Called where the lanes meet.
    fileprivate func apply() {}
    /// Notifies the observers, and reports. Called in the lane, before anything else that it does.
    fileprivate func tell() {}

    /// Gives each store its part, behind what is in its line. The stores are of one scope.
    ///
    /// All places are kept under the locks of a reservation, as those of a chain are. So two meetings come in the same
    /// order in all lanes that they share.
    package static func deliver(_ runs: [JointRun]) {
        guard let scope = runs.first?.scope else { return }
        let meeting = Rendezvous(count: runs.count) { _ in
            for run in runs { run.apply() }
            for run in runs { run.lane.putFirst { run.tell() } }
        }
        let mark = ThreadMark.outsideModels
        var closed: [Lane] = []
        scope.reserving(in: runs.map(\.channel)) { _ in
            for run in runs where !run.lane.keepPlace(for: meeting, by: mark.thread) {
                closed.append(run.lane)
            }
        }
        for lane in closed { meeting.abandon(lane) }
        for run in runs { run.lane.kick(mark) }
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
    private let withholding = Withholding()
    private var report = RunReport.closed

    init(
        _ core: StoreCore<S>, _ run: OrderedRun<S>, through: StoreVersion,
        _ completion: @escaping @Sendable (RunReport) -> Void
    ) {
        (self.core, self.run, self.through) = (core, run, through)
        self.completion = completion
        state = core.kept
        super.init(core, core.scope)
    }

    override var channel: any StateChannel { core.scope.channel(of: S.self) }

    override func apply() {
        guard state != nil else { return }
        let mark = ThreadMark.current
        core.run(mark) {
            FlowLock.holding(nil) {
                // Used by this thread alone.
                nonisolated(unsafe) var done = RunReport.closed
                withholding.withhold(mark) {
                    core.perform(run, through: through) { done = $0 }
                }
                report = done
            }
        }
    }

    override func tell() {
        withholding.end()
        completion(report)
    }
}

/// Lets signals keep what they are sent, until it ends.
final class Withholding: LaneHold {
    private struct Content {
        var lanes: [ObjectIdentifier: ObserverLane] = [:]
        var parked: [Lane] = []
        var isOver = false
    }

    private let content = Mutex(Content())

    /// Withholds what a store's commits send, and not what stores send to which these dispatch.
    func withhold(_ mark: UnsafeMutablePointer<ThreadMark>, _ body: () -> Void) {
        let former = (mark.pointee.withholding, mark.pointee.withholdingDepth)
        (mark.pointee.withholding, mark.pointee.withholdingDepth) = (self, mark.pointee.lanes)
        body()
        (mark.pointee.withholding, mark.pointee.withholdingDepth) = former
    }

    /// Notes that a signal is sent something. Called under its mutex.
    ///
    /// - Returns: Whether it is the first time, so that the hold is to be put into its line.
    func begins(_ lane: ObserverLane) -> Bool {
        content.withLock { $0.lanes.updateValue(lane, forKey: ObjectIdentifier(lane)) == nil }
    }

    /// Lets the signals deliver.
    func end() {
        let ended = content.withLock { exchange(&$0, with: Content(isOver: true)) }
        for lane in ended.parked { lane.resume(self) }
        for lane in ended.lanes.values { lane.kick(ThreadMark.current) }
    }

    func arrive(_ lane: Lane) -> Bool {
        content.withLock { content in
            if !content.isOver { content.parked.append(lane) }
            return content.isOver
        }
    }

    func abandon(_ lane: Lane) {}
}

extension StoreCore {
    /// Whether it may apply something together with other stores: that happens on the executor of any of them.
    package var canJoin: Bool { isImmediate || S.self is any ValueHolder.Type }

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
