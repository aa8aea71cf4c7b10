/// A model whose reducer says what is to happen later.
///
/// ```swift
/// case .hold(let seat, let name):
///     holders[seat] = name
///     schedule.set(.expire(seat: seat), after: .seconds(30), key: "hold-\(seat)", in: context)
/// case .pay(let seat):
///     schedule.cancel("hold-\(seat)")
/// ```
///
/// Before an action is judged, everything that is due by the action's timestamp *fires*: in the order of time, each item
/// as its own action, which is checked and applied. So it happens once, in every replica alike, and in whatever is made
/// of the log later. Then the action itself is checked and applied.
///
/// - An action that is refused changes nothing, as always. What would have fired with it fires with the next one.
/// - A firing that `check` refuses has no effect. It is over, and nobody learns of it.
/// - The context of a firing has the sequence number and the timestamp of the entry with which it fires, no origin, and
///   random numbers of its own.
/// - An item that repeats fires once for all the times that have passed since the last entry.
/// - What is set while items fire waits for the next entry, even if it is due.
///
/// Declare the conformance in the module of the model: elsewhere it comes too late, and nothing fires.
///
/// A process that has the store dispatches ``timePassed`` when an item is due, so that there is an entry. If a node hosts
/// the store, it does so on condition that the store has not changed. Of several hosts, one succeeds.
public protocol ScheduledModel: Model {
    /// What is to happen later. Only the reducer changes it.
    var schedule: Schedule<Action> { get set }

    /// An action that means only that time has passed. It must pass `check`, and `apply` need do nothing.
    ///
    /// If a program dispatches it without need, it does no harm.
    static var timePassed: Action { get }
}

extension ScheduledModel {
    /// Fires what is due, then checks and applies.
    public mutating func _commit(_ action: Action, _ context: ActionContext) throws {
        try commit(action, context) { model, action, context in
            try model.check(action, context)
            model.apply(action, context)
        }
    }

    /// Fires what is due, then commits an action.
    ///
    /// - Parameters:
    ///   - action: The action.
    ///   - context: Its context.
    ///   - perform: Checks and applies an action. If it throws, it has changed nothing.
    /// - Throws: Why the action is refused. Then nothing has changed, and nothing has fired.
    fileprivate mutating func commit(
        _ action: Action, _ context: ActionContext,
        by perform: (inout Self, Action, ActionContext) throws -> Void
    ) throws {
        if schedule.isDue(at: context.timestamp) {
            let before = self
            fire(context, by: perform)
            do {
                try perform(&self, action, context)
            } catch {
                self = before
                throw error
            }
        } else {
            try perform(&self, action, context)
        }
        schedule.latest = context.timestamp
    }

    private mutating func fire(
        _ context: ActionContext, by perform: (inout Self, Action, ActionContext) throws -> Void
    ) {
        let (time, entry) = (context.timestamp, context.sequence)
        schedule.mark(at: time, for: entry)
        // Each item is taken once: the bound holds whatever the reducer does to the schedule meanwhile.
        let bound = schedule.items.count
        var count = 0
        while count < bound, let item = schedule.takeMarked(at: time, for: entry) {
            count += 1
            // A firing that is refused is over.
            try? perform(&self, item.action, context.ofFiring(count))
        }
    }
}

extension ScheduledModel where Self: ReducedModel {
    /// Fires what is due, then checks the action and applies it by its reducer.
    public mutating func _commit(_ action: Action, _ context: ActionContext) throws {
        try commit(action, context) { model, action, context in
            try model.commitTyped(action, context)
        }
    }
}
