import Conflux
import ConfluxProtocol

/// What other threads ask of the link.
extension LinkThread {
    func ask(
        _ body: Question.Body, _ patience: Duration, _ reply: @escaping @Sendable (Answer) -> Void
    ) {
        let number = nextAsk
        nextAsk += 1
        // The sequencer ends a question in time. This deadline is for when the sequencer itself is
        // gone.
        asks[number] = Ask(deadline: now.monotonic + patience + .seconds(1), reply: reply)
        perform(.ask(Question(number: number, patience: patience, body: body)))
    }

    var status: LinkStatus {
        LinkStatus(
            isJoined: machine.isJoined, log: machine.log == .none ? nil : machine.log,
            epoch: machine.epoch, incarnation: machine.incarnation, last: machine.remoteLast,
            live: machine.live, applied: machine.applied, unsettled: machine.unsettledCount,
            resumption: machine.resumption)
    }

    /// Answers those who still wait for an answer from this thread.
    func takeLastCommands() {
        port.mailbox.drain(into: &commands)
        for command in commands {
            switch command {
            case .ask(_, _, let reply):
                reply(
                    Answer(
                        number: 0, isLast: true, node: nil,
                        body: .failed(.timedOut, message: "the node was closed")))
            case .status(let reply): reply(status)
            case .machine, .probe, .withdraw, .leave: break
            }
        }
    }
}
