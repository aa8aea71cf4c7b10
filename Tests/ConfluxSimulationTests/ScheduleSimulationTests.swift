import Conflux
import ConfluxSimulation
import Testing

/// A model with a schedule, in a cluster in which things break (P12).
@Suite(.timeLimit(.minutes(5)))
struct ScheduleSimulationTests {
    /// Alarms, each with a number of its own. Each rings once, unless it is cancelled or replaced.
    struct Alarms: ScheduledModel {
        static let name = "alarms"
        static let timePassed = Action.timePassed
        enum Action: Codable, Sendable {
            case set(key: Int, milliseconds: Int)
            case cancel(key: Int)
            case ring(number: Int)
            case timePassed
        }

        struct Late: Error {}

        var count = 0
        /// The numbers of those that have not rung, by their keys.
        var pending: [Int: Int] = [:]
        var rung: [Int] = []
        /// What went wrong.
        var fault: String?
        var schedule = Schedule<Action>()

        func check(_ action: Action, _ context: ActionContext) throws {
            if case .set(_, 0) = action { throw Late() }
        }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            if let due = schedule.nextDue, due <= context.timestamp, context.origin != nil {
                fault = "\(action) at \(context.timestamp) came before what was due at \(due)"
            }
            switch action {
            case .set(let key, let time):
                (count, pending[key]) = (count + 1, count)
                schedule.set(
                    .ring(number: count - 1), after: .milliseconds(time), key: "\(key)", in: context
                )
            case .cancel(let key):
                pending[key] = nil
                schedule.cancel("\(key)")
            case .ring(let number):
                guard let key = pending.first(where: { $0.value == number })?.key else {
                    fault = "\(number) rang, and was over"
                    return
                }
                pending[key] = nil
                rung.append(number)
            case .timePassed: break
            }
        }

        var failure: String? {
            if let fault { return fault }
            return pending.count == schedule.items.count
                ? nil : "\(pending.count) are pending, and \(schedule.items.count) scheduled"
        }
    }

    @Test(arguments: UInt64(1)...10)
    func `each alarm rings once, in all replicas alike, whatever breaks`(seed: UInt64) {
        let alarms = SimulatedState.model(Alarms.self, invariant: { $0.failure }) { random, _ in
            switch random.int(in: 0...5) {
            case 0...1:
                .set(key: random.int(in: 0...9), milliseconds: 100 * random.int(in: 0...30))
            case 2: .cancel(key: random.int(in: 0...9))
            default: .timePassed
            }
        }
        let report = Simulation(seed: seed, states: [alarms], lasting: .seconds(10)).run()
        #expect(report.violation == nil, "\(report)")
    }
}
