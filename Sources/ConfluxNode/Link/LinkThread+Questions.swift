import Conflux
import ConfluxProtocol
import ConfluxVocabulary

extension LinkPort {
    /// How much later than the link a caller gives up.
    private static let reserve = Duration.milliseconds(20)

    /// Asks a question that has one answer.
    func ask(_ body: Question.Body, patience: Duration) async throws(NodeError) -> Answer {
        let first = OneShot<Result<Answer, NodeError>>()
        guard post(.ask(body, patience: patience) { first.send(.success($0)) }) == .accepted else {
            throw .closed
        }
        // The link answers in time, and says why there is no answer, unless code of a store holds it up.
        let late = NodeError(
            code: .timedOut,
            message: """
                The node itself did not get to it within \(patience): the code of a store or of an observer holds it \
                up. Ask again when that has ended.
                """)
        let answer = try await first.receive(
            onCancel: .failure(.cancelled), timeout: patience + Self.reserve,
            onTimeout: .failure(late)
        ).get()
        if case .failed(let failure, let message) = answer.body {
            throw NodeError(
                code: failure == .timedOut ? .timedOut : .unanswered, message: message,
                questionFailure: failure)
        }
        return answer
    }
}

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
                    number: number, body: .failed(.timedOut, message: "the node was closed")))
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
                        number: 0, body: .failed(.timedOut, message: "the node was closed")))
            case .status(let reply): reply(status)
            case .load(_, _, let reply): reply(nil)
            case .keep(_, let vigil): vigil.end(.closed)
            case .machine, .probe, .withdraw, .leave, .endVigil: break
            }
        }
    }
}
