extension SequencerMachine {
    /// Answers a message that the connection's key may not send. Nothing else happens.
    func deny(
        _ message: NodeMessage, _ text: String, to connection: ConnectionID,
        into effects: inout [SequencerEffect]
    ) {
        let failed = { (request: UInt64) in
            SequencerMessage.confirmed(
                Confirmed(request: request, outcome: .failed(.notAllowed, message: text)))
        }
        let answer: SequencerMessage =
            switch message {
            case .open(let open):
                .opened(
                    Opened(request: open.request, outcome: .failed(.notAllowed, message: text)))
            case .drop(let drop): failed(drop.request)
            case .freeze(let freeze): failed(freeze.request)
            case .upgrade(let upgrade): failed(upgrade.request)
            case .skip(let skip): failed(skip.request)
            case .question(let question):
                .answer(
                    Answer(
                        number: question.number, body: .failed(.notAllowed, message: text)))
            case .hello, .close, .submit, .fetch, .progress, .answer, .barrier, .load,
                .digest, .snapshot, .migrated, .leaving, .bye:
                .bye(Bye(code: .notAllowed, message: text))
            }
        effects.append(.send(answer, to: connection))
    }
}
