import ChatModel
import Conflux
import ConfluxSimulation
import ConfluxTesting
import Testing

@Suite(.ownScope, .timeLimit(.minutes(5)))
struct RoomTests {
    @Test func `who is in the room can speak`() async {
        let room = TestStore(ModelStore(Room())) { $0.state.snapshot.lines.map { "\($0)" } }
        await room.send(.say(name: "ada", text: "hello?"), failing: .refused)
        await room.send(.join(name: "ada")) { $0 = ["* ada came in"] }
        await room.send(.join(name: "ada"), failing: .refused)
        await room.send(.say(name: "ada", text: "hello")) { $0.append("ada: hello") }
        await room.send(.leave(name: "ada")) { $0.append("* ada left") }
        await room.send(.leave(name: "ada"), failing: .refused)
        await room.finish()
    }

    @Test func `a room keeps the last lines`() async {
        let store = ModelStore(Room())
        store.dispatch(.join(name: "ada"))
        for number in 1...Room.linesMax { store.dispatch(.say(name: "ada", text: "\(number)")) }
        #expect(store.lines.count == Room.linesMax)
        #expect(store.lines.first?.text == "1" && store.lines.last?.number == Room.linesMax + 1)
    }

    @Test func `a room is deterministic`() async {
        await DeterminismChecker(Room.self).check { random in
            let name = ["ada", "bob"].randomElement(using: &random) ?? ""
            return switch Int.random(in: 0...2, using: &random) {
            case 0: .join(name: name)
            case 1: .say(name: name, text: "hello")
            default: .leave(name: name)
            }
        }
    }

    @Test(arguments: UInt64(1)...5)
    func `everybody reads the same, whatever breaks`(seed: UInt64) {
        let rooms = SimulatedState.model(Room.self) { random in
            let name = random.pick(["ada", "bob"])
            return switch random.int(in: 0...2) {
            case 0: .join(name: name)
            case 1: .say(name: name, text: "hello")
            default: .leave(name: name)
            }
        }
        let report = Simulation(seed: seed, states: [rooms]).run()
        #expect(report.violation == nil, "\(report)")
    }
}
