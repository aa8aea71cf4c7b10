import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Asks questions for other threads.
extension LinkThread {
    /// How long an answer may be on its way.
    private static let answerReserve = Duration.milliseconds(250)

    func ask(
        _ body: Question.Body, _ patience: Duration, _ reply: @escaping @Sendable (Answer) -> Void
    ) {
        let number = nextAsk
        nextAsk += 1
        asks[number] = Ask(deadline: now.monotonic + patience, reply: reply)
        // The sequencer knows who did not answer, and must say so before the node's own deadline.
        let earlier = patience - min(patience / 4, Self.answerReserve)
        perform(.ask(Question(number: number, patience: earlier, body: body)))
    }

    func pass(_ answer: Answer) {
        let reply = asks[answer.number]?.reply
        if answer.isLast { asks[answer.number] = nil }
        reply?(answer)
    }

    /// The node is closed: nothing that was asked for comes any more.
    func abandonQuestions() {
        for (number, ask) in asks {
            ask.reply(
                Answer(
                    number: number, isLast: true, node: nil,
                    body: .failed(.timedOut, message: "the node was closed")))
        }
        for reply in loads.values { reply(nil) }
    }

    func load(
        _ place: SnapshotPlace, _ reference: SnapshotReference,
        _ reply: @escaping @Sendable (Bytes?) -> Void
    ) {
        let request = nextAsk
        nextAsk += 1
        loads[request] = reply
        perform(.load(place, reference, request: request))
    }

    var status: LinkStatus {
        LinkStatus(
            isConnected: machine.isConnected, log: machine.log == .none ? nil : machine.log,
            epoch: machine.epoch, incarnation: machine.incarnation, last: machine.remoteLast,
            live: machine.live, applied: machine.applied, unsettled: machine.unsettledCount,
            resumption: machine.resumption)
    }

    /// Answers all commands that still wait for this thread.
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
            case .load(_, _, let reply): reply(nil)
            case .keep(_, let vigil): vigil.end(.closed)
            case .machine, .probe, .withdraw, .leave, .endVigil: break
            }
        }
    }
}
