import Conflux
import ConfluxProtocol

/// Answers to questions about the stores here, each as soon as it can be given.
extension Applier {
    /// Tries to answer a question.
    func isAnswered(_ question: Question) -> Bool {
        switch question.body {
        case .observe(let store, _, let after): observe(store, after, question.number)
        case .applied(let sequence, let target): effect(of: sequence, target, question.number)
        case .status, .alive: true
        }
    }

    private func reply(_ number: UInt64, _ body: Answer.Body) {
        tell(.answer(Answer(number: number, isLast: true, node: nil, body: body)))
    }

    /// - Returns: Whether the question was answered.
    private func observe(_ store: StoreName, _ after: SequenceNumber, _ number: UInt64) -> Bool {
        guard let hosted = appliers[store.state]?.hosted(store) else {
            reply(number, .failed(.notHosted, message: "the node does not host \(store) any more"))
            return true
        }
        guard hosted.isAttached, hosted.lastChange > after else { return false }
        let position = hosted.lastChange
        let (tell, background) = (tell, background)
        hosted.copy { encoding in
            background {
                let body = Self.stateAnswer(store, position, encoding)
                tell(.answer(Answer(number: number, isLast: true, node: nil, body: body)))
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
            guard bytes.count <= WireLimits.standard.frameBytesMax - 4_096 else {
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
        guard applied >= sequence else { return false }
        let restoredAt: SequenceNumber
        switch target {
        case .store(let store):
            guard let hosted = appliers[store.state]?.hosted(store), hosted.isAttached else {
                return false
            }
            restoredAt = hosted.restoredAt
        case .state, .event:
            // Its stores may have come one after the other.
            restoredAt = appliers.values.lazy.map(\.restoredAt).max() ?? .zero
        }
        if let message = refusals.message(of: sequence) {
            reply(number, .refused(message: message))
        } else if sequence <= max(refusals.unknownThrough, restoredAt) {
            reply(
                number, .failed(.effectUnknown, message: "the node joined after entry \(sequence)"))
        } else {
            reply(number, .applied)
        }
        return true
    }
}
