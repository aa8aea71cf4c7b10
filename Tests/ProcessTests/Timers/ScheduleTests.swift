import Conflux
import ConfluxNode
import Foundation
import Spawning
import Testing

extension ProcessTests {
    /// What a model schedules, while the sequencer is killed.
    struct ScheduleTests {
        /// Seats that are held for a while, and then given back.
        private struct Seats: ScheduledModel {
            static let name = "seats"
            static let timePassed = Action.timePassed
            enum Action: Codable, Sendable { case hold(Int, Int), expire(Int), timePassed }
            var expired: [Int] = []
            var schedule = Schedule<Action>()

            mutating func apply(_ action: Action, _ context: ActionContext) {
                switch action {
                case .hold(let seat, let time):
                    schedule.set(
                        .expire(seat), after: .milliseconds(time), key: "\(seat)", in: context)
                case .expire(let seat): expired.append(seat)
                case .timePassed: break
                }
            }
        }

        @Test func `each item fires once, though the sequencer is killed before and after`()
            async throws
        {
            try await withSite { site in
                var sequencer = try await site.sequencer(data: "log")
                let node = try await Node.connect(to: sequencer.address, scope: Scope())
                let seats = try await node.store(Seats.self)
                // Some are due while no sequencer runs, and others after each restart.
                for seat in 1...40 { try await seats.dispatch(.hold(seat, 50 * seat)).receipt() }
                for count in [10, 20, 30] {
                    _ = try await seats.value(within: .seconds(90)) { $0.expired.count >= count }
                    sequencer.child.signal(SIGKILL)
                    #expect(try await sequencer.child.end() == .killed(SIGKILL))
                    sequencer = try await site.sequencer(data: "log", at: sequencer)
                }
                let last = try await seats.value(within: .seconds(90)) { $0.schedule.isEmpty }
                #expect(last.expired == Array(1...40))
                await node.close()

                // From the log, it is the same.
                let late = try await Node.connect(to: sequencer.address, scope: Scope())
                #expect(try await late.store(Seats.self).expired == Array(1...40))
                await late.close()
            }
        }
    }
}
