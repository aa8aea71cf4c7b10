import Conflux
import ConfluxTesting
import TicketModel
import Testing

@Suite(.ownScope, .timeLimit(.minutes(5)))
struct HallTests {
    @Test func `a seat that nobody pays for is free again after two minutes`() async {
        let hall = TestStore(Hall())
        hall.time = Timestamp(0)
        await hall.send(.hold(seat: "A1", customer: "ada")) { hall, context in
            hall.seats = ["A1": Hall.Seat(customer: "ada", isSold: false)]
            hall.schedule.set(
                .free(seat: "A1", customer: "ada"), after: .seconds(120), key: "A1", in: context)
        }
        await hall.send(.hold(seat: "A1", customer: "bob"), failing: .refused) { error in
            #expect(error.reason as? HallRefusal == .taken("A1"))
        }
        hall.advance(by: .seconds(120))
        await hall.receive(.timePassed) { $0 = Hall() }
        await hall.finish()
    }

    @Test func `a hall and sales are deterministic`() async {
        await DeterminismChecker(Hall.self).check { random in
            let seat = "A\(Int.random(in: 1...3, using: &random))"
            return Bool.random(using: &random)
                ? .hold(seat: seat, customer: "ada") : .sell(seat: seat, customer: "ada")
        }
        await DeterminismChecker(Sales.self).check { random in
            let order = "\(Int.random(in: 1...3, using: &random))"
            return Bool.random(using: &random)
                ? .pay(order: order, seat: "A1", customer: "ada")
                : .settle(order: order, status: .sold)
        }
    }
}
