import Conflux
import ConfluxTesting
import PollModel
import Testing

@Suite(.ownScope, .timeLimit(.minutes(5)))
struct PollTests {
    @Test func `a vote counts only for an answer that the poll offers`() async {
        let poll = TestStore(Poll())
        await poll.send(.vote(answer: "tea"), failing: .refused)
        await poll.send(.offer(answer: "tea")) { $0.votes["tea"] = 0 }
        await poll.send(.vote(answer: "tea")) { $0.votes["tea"] = 1 }
        await poll.finish()
    }

    @MainActor
    @Test func `a screen shows the votes`() {
        let poll = ModelStore(Poll())
        let screen = PollScreen(poll)
        poll.dispatch(.offer(answer: "tea"))
        #expect(screen.text == "tea 0")
    }

    @Test func `a poll is deterministic`() async {
        await DeterminismChecker(Poll.self).check { random in
            Bool.random(using: &random) ? .offer(answer: "tea") : .vote(answer: "tea")
        }
    }
}
