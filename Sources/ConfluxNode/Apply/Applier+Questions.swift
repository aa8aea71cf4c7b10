import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Answers questions about the stores here, each as soon as possible.
extension Applier {
    /// Tries to answer a question. Returns whether the question is done with.
    func isAnswered(_ question: Question) -> Bool {
        switch question.body {
        case .observe(let store, _, let after): observe(store, after, question.number)
        case .applied(let sequence, let target): effect(of: sequence, target, question.number)
        case .status, .shapes, .alive, .reload, .sequencers, .handOver, .start, .timers, .lease,
            .leases:
            true
        }
    }

    private func reply(_ number: UInt64, _ body: Answer.Body) {
        tell(.answer(Answer(number: number, body: body)))
    }

    /// - Returns: Whether the question was answered.
    private func observe(_ store: StoreName, _ after: SequenceNumber, _ number: UInt64) -> Bool {
        guard let replica = replica(store) else {
            reply(number, .failed(.notHosted, message: "the node does not host \(store) any more"))
            return true
        }
        guard replica.isAttached || replica.progress.stop?.at != nil, replica.lastChange > after
        else { return false }
        let position = replica.lastChange
        let (tell, background) = (tell, background)
        replica.copy { encoding in
            background {
                let body = Self.stateAnswer(store, position, encoding)
                tell(.answer(Answer(number: number, body: body)))
            }
        }
        return true
    }

    private static func stateAnswer(
        _ store: StoreName, _ position: SequenceNumber, _ encoding: Encoding?
    ) -> Answer.Body {
        guard let encoding else {
            return .failed(
                .notHosted, message: "the node does not host \(store) any more")
        }
        do {
            let bytes = try encoding()
            guard bytes.count <= WireLimits.shownStateBytesMax else {
                return .failed(
                    .tooLarge, message: "the state of \(store) has \(bytes.count) bytes")
            }
            return .state(store, position, bytes[...])
        } catch {
            return .failed(
                .tooLarge, message: "the state of \(store) can't be encoded: \(error)")
        }
    }

    /// - Returns: Whether the question was answered.
    private func effect(
        of sequence: SequenceNumber, _ target: Target, _ number: UInt64
    ) -> Bool {
        let concerned = stores(concernedBy: target) ?? []
        // It may have applied the entry before it stopped hosting the store, and so may another one.
        guard !concerned.isEmpty else {
            reply(number, .failed(.notHosted, message: "the node does not host \(target) any more"))
            return true
        }
        if case .store = target, concerned.contains(where: { sequence <= $0.life }) {
            let text = "\(target) is another store since entry \(sequence)"
            reply(number, .failed(.effectUnknown, message: text))
            return true
        }
        guard concerned.allSatisfy({ $0.hasReached(sequence, delivered) }) else { return false }
        let effect = concerned.reduce(Effect.nobody) { .merged($0, $1.effect(of: sequence)) }
        switch effect {
        case .applied: reply(number, .applied)
        case .refused(let message, _): reply(number, .refused(message: message))
        case .stopped(let at, let message):
            reply(number, .stopped(at: at ?? .zero, message: message))
        case .nobody: reply(number, .concernedNobody)
        case .unknown:
            let text = "the node joined after entry \(sequence), or it was too long ago"
            reply(number, .failed(.effectUnknown, message: text))
        }
        return true
    }
}
