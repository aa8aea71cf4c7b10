import Conflux
import ConfluxNode
import Synchronization
import Testing

/// Events that stores of several states handle, in every process.
struct EventTests {
    struct Rang: Event {
        var by: Int
    }

    /// A model that handles the event.
    struct Bell: Model, EventHandling {
        static let name = "bell"
        static let events = EventHandlers<Action>().on(Rang.self) { .ring($0.by) }
        var rings: [Int] = []
        enum Action: Codable, Sendable { case ring(Int) }

        mutating func apply(_ action: Action, _ context: ActionContext) {
            if case .ring(let by) = action { rings.append(by) }
        }
    }

    /// A class that handles it, and notifies while it changes.
    final class Door: BridgedState, EventHandling {
        static let name = "door"
        static let events = EventHandlers<Action>().on(Rang.self) { .open($0.by) }
        enum Action: Codable, Sendable { case open(Int) }
        struct Mutations: Conflux.Mutations {
            func commit(action: Action, state: Door) {
                if case .open(let by) = action { state.openings.value.append(by) }
            }
        }

        let openings = Variable<[Int]>([])
    }

    @Test func `an event reaches all states at one place, and no observer sees half of it`()
        async throws
    {
        try await withWorld { world in
            let torn = Atomic(0)
            var houses: [(node: Node, scope: Scope, bell: ModelStore<Bell>, door: Store<Door>)] =
                []
            for name in ["alpha", "beta"] {
                let scope = Scope()
                let node = try await world.node(name, scope: scope)
                let bell = try await node.store(Bell.self)
                let door = scope.run {
                    Store<Door>(state: Door(), mutations: .init(), executor: .immediate)
                }
                try await node.bridge(Door.self)
                houses.append((node, scope, bell, door))
            }
            // A store that has just joined catches up by itself.
            for house in houses { try await house.scope.send(Rang(by: 0)).receipt() }
            for house in houses {
                try await house.node.barrier()
                let (bell, openings) = (house.bell, house.door.computed.state.openings)
                bell.observe { bell in
                    if bell.rings != openings.value { torn.add(1, ordering: .relaxed) }
                }
                openings.signal.observe { openings in
                    if openings != bell.rings { torn.add(1, ordering: .relaxed) }
                }
            }
            let each = 100
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (number, house) in houses.enumerated() {
                    group.addTask {
                        for _ in 1...each {
                            try await house.scope.send(Rang(by: number)).receipt()
                        }
                    }
                }
                try await group.waitForAll()
            }
            for house in houses {
                try await house.node.barrier()
                #expect(house.bell.rings.count == 2 * (1 + each))
                #expect(house.bell.rings == house.door.computed.state.openings.value)
                #expect(house.bell.rings == houses[0].bell.rings)
            }
            #expect(torn.load(ordering: .relaxed) == 0)
            for house in houses { await house.node.close() }
        }
    }
}
