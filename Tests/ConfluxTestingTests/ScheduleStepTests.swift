import Conflux
import ConfluxTesting
import Testing

/// A test moves the time of a store whose model has a schedule.
@Suite(.ownScope, .timeLimit(.minutes(2)))
struct ScheduleStepTests {
    /// An oven that rings when the bread is done, and then each minute.
    private struct Oven: ScheduledModel, Equatable {
        static let name = "oven"
        static let timePassed = Action.timePassed
        enum Action: Codable, Sendable, Equatable { case bake, open, ring, timePassed }
        var rings = 0
        var rungAt: Timestamp?
        var schedule = Schedule<Action>()

        mutating func apply(_ action: Action, _ context: ActionContext) {
            switch action {
            case .bake:
                schedule.set(
                    .ring, after: .seconds(1_800), every: .seconds(60), key: "ring", in: context)
            case .open: schedule.cancel("ring")
            case .ring: (rings, rungAt) = (rings + 1, context.timestamp)
            case .timePassed: break
            }
        }
    }

    private func seconds(_ seconds: Int64) -> Timestamp { Timestamp(seconds * 1_000_000_000) }

    @Test func `what is due fires when a test moves the time, and not before`() async {
        let oven = TestStore(Oven())
        oven.time = seconds(0)
        await oven.send(.bake) { oven, context in
            oven.schedule.set(
                .ring, after: .seconds(1_800), every: .seconds(60), key: "ring", in: context)
        }
        oven.advance(by: .seconds(1_799))
        oven.advance(by: .seconds(4))
        await oven.receive(.timePassed) { [self] in
            ($0.rings, $0.rungAt) = (1, seconds(1_803))
            $0.schedule.set(.ring, at: seconds(1_860), every: .seconds(60), key: "ring")
        }
        // It rings at the time that was intended, and once for the times that have passed.
        oven.advance(by: .seconds(57))
        await oven.receive(.timePassed) { [self] in
            ($0.rings, $0.rungAt) = (2, seconds(1_860))
            $0.schedule.set(.ring, at: seconds(1_920), every: .seconds(60), key: "ring")
        }
        oven.advance(by: .seconds(200))
        await oven.receive(.timePassed) { [self] in
            ($0.rings, $0.rungAt) = (3, seconds(2_060))
            $0.schedule.set(.ring, at: seconds(2_100), every: .seconds(60), key: "ring")
        }
        await oven.send(.open) { $0.schedule.cancel("ring") }
        oven.advance(by: .seconds(86_400))
        await oven.finish()
    }

    @Test func `a model with a schedule is deterministic`() async {
        await DeterminismChecker(Oven.self).check { random in
            [.bake, .open, .timePassed].randomElement(using: &random) ?? .bake
        }
    }
}
