import Conflux
import ConfluxVocabulary

/// A hall whose seats are held for a while.
struct Hall: ScheduledModel, Equatable {
    static let name = "hall"
    static let timePassed = Action.timePassed

    indirect enum Action: Codable, Sendable, Equatable {
        case hold(Int, seconds: Int)
        case pay(Int)
        case expire(Int)
        /// Has an action happen after some seconds, again and again if there is an interval.
        case set(Action, after: Int, every: Int?, key: String)
        case cancel(String)
        case note(String)
        case roll
        /// Sets itself again for now.
        case insist
        /// Makes the hall as it was at first, and insists.
        case reset
        case timePassed
    }

    var held: Set<Int> = []
    var notes: [String] = []
    var schedule = Schedule<Action>()

    struct Taken: Error, Equatable { let seat: Int }

    func check(_ action: Action, _ context: ActionContext) throws {
        switch action {
        case .hold(let seat, _):
            if held.contains(seat) { throw Taken(seat: seat) }
            try schedule.requireRoom()
        case .note(""): throw Taken(seat: 0)
        default: break
        }
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .hold(let seat, let seconds):
            held.insert(seat)
            schedule.set(
                .expire(seat), after: .seconds(seconds), key: "hold-\(seat)", in: context)
        case .pay(let seat): schedule.cancel("hold-\(seat)")
        case .expire(let seat):
            held.remove(seat)
            notes.append("expired \(seat)")
        case .set(let action, let delay, let interval, let key):
            schedule.set(
                action, after: .seconds(delay), every: interval.map { .seconds($0) }, key: key,
                in: context)
        case .cancel(let key): schedule.cancel(key)
        case .note(let text): notes.append("\(text) at \(context.timestamp.seconds)")
        case .roll:
            var random = context.random
            notes.append("\(UInt64.random(in: 0...UInt64.max, using: &random))")
        case .insist:
            notes.append("insists")
            schedule.set(.insist, after: .zero, key: "insist", in: context)
        case .reset:
            self = Hall()
            notes.append("reset")
            for key in ["a", "b"] { schedule.set(.reset, after: .zero, key: key, in: context) }
        case .timePassed: break
        }
    }
}

extension Timestamp {
    /// Whole seconds since 1970.
    var seconds: Int64 { rawValue / 1_000_000_000 }

    init(seconds: Int64) { self.init(seconds * 1_000_000_000) }
}

/// A hall in a log of its own, whose entries have the times that a test says.
struct HallLog {
    var hall = Hall()
    var last: UInt64 = 0

    /// - Returns: Why the action was refused, if it was.
    @discardableResult
    mutating func append(_ action: Hall.Action, at seconds: Int64) -> (any Error)? {
        last += 1
        let context = ActionContext(
            sequence: SequenceNumber(last), timestamp: Timestamp(seconds: seconds),
            origin: Origin(incarnation: Incarnation(1), counter: last))
        do {
            try hall._commit(action, context)
            return nil
        } catch {
            return error
        }
    }
}
