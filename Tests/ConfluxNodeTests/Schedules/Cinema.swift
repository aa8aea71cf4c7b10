import Conflux
import ConfluxNode

/// A cinema whose seats are held for a while. It writes down what it did.
struct Cinema: ScheduledModel, Equatable {
    static let name = "cinema"
    static let timePassed = Action.timePassed

    enum Action: Codable, Sendable, Equatable {
        case hold(Int, milliseconds: Int)
        case pay(Int)
        case expire(Int)
        case remind(every: Int)
        case note(String)
        /// From now on, the check refuses to hear that time has passed.
        case mute
        case timePassed
    }

    var held: Set<Int> = []
    var notes: [String] = []
    /// The times at which items fired.
    var times: [Timestamp] = []
    var isMute = false
    var schedule = Schedule<Action>()

    struct Refused: Error {}

    func check(_ action: Action, _ context: ActionContext) throws {
        switch action {
        case .hold(let seat, _) where held.contains(seat): throw Refused()
        case .timePassed where isMute: throw Refused()
        default: break
        }
    }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .hold(let seat, let time):
            held.insert(seat)
            schedule.set(
                .expire(seat), after: .milliseconds(time), key: "hold-\(seat)", in: context)
        case .pay(let seat): schedule.cancel("hold-\(seat)")
        case .expire(let seat):
            held.remove(seat)
            notes.append("expired \(seat)")
            times.append(context.timestamp)
        case .remind(let interval):
            if schedule["remind"] == nil {
                let time = Duration.milliseconds(interval)
                schedule.set(
                    .remind(every: interval), after: time, every: time, key: "remind", in: context)
            } else {
                notes.append("reminds")
            }
        case .note(let note): notes.append(note)
        case .mute: isMute = true
        case .timePassed: break
        }
    }

    /// How often a note was made.
    func count(of note: String) -> Int { notes.count { $0 == note } }
}
