import Conflux
import ConfluxTesting
import PollModel
import Testing

@Suite(.ownScope, .timeLimit(.minutes(5)))
struct BoothTests {
    @Test func `a booth is free again after thirty seconds`() async {
        let booth = TestStore(Booth())
        booth.time = Timestamp(0)
        await booth.send(.enter(voter: "ada")) { booth, context in
            booth.voter = "ada"
            booth.schedule.set(
                .leave(voter: "ada"), after: .seconds(30), key: "end", in: context)
        }
        await booth.send(.enter(voter: "bob"), failing: .refused)
        booth.advance(by: .seconds(30))
        await booth.receive(.timePassed) { $0 = Booth() }
        await booth.finish()
    }
}
