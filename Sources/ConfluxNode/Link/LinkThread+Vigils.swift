import ConfluxProtocol
import ConfluxVocabulary

/// A caller that waits for the sequencer, with a deadline.
struct Vigil: Sendable {
    /// What is waited for.
    enum Goal: Sendable, Hashable {
        /// That the node hears from the sequencer in every way that it needs.
        case hearing
        /// That a store or a state is open. The time in which it waits for this process does not count: a large state
        /// takes time to decode, and a slow executor is none of the sequencer's business.
        case hosting(HostingSubject)
    }

    let goal: Goal
    /// How long to wait for the sequencer, from the beginning or from the last part of a state that came.
    let patience: Duration
    /// When the present wait began.
    var since: Duration
    /// Called once, on the link's thread: with an error when the patience is over, or nil when the goal is reached.
    let end: @Sendable (NodeError?) -> Void

    /// When the patience is over, as far as is known.
    var deadline: Duration { since + patience }
}

/// Ends the waits that take too long, and says what keeps the node from its sequencer.
extension LinkThread {
    /// Ends the vigils that have reached their goal, or whose patience is over.
    func lookAtVigils(at now: Duration) {
        guard !vigils.isEmpty else { return }
        for (number, vigil) in vigils {
            switch vigil.goal {
            case .hearing where machine.isWhole:
                vigils[number] = nil
                vigil.end(nil)
                continue
            case .hearing: break
            case .hosting(let subject):
                let since =
                    machine.awaitsSequencer(for: subject)
                    ? max(vigil.since, machine.loadedAt) : now
                vigils[number]?.since = since
                if now < since + vigil.patience { continue }
            }
            guard now >= vigil.deadline else { continue }
            vigils[number] = nil
            vigil.end(failure(of: vigil))
        }
    }

    private func failure(of vigil: Vigil) -> NodeError {
        let address = dealer.endpoint?.description ?? "its address"
        if !machine.isJoined {
            return NodeError(
                code: .unreachable,
                message: troubles.requests.message
                    ?? "The sequencer at \(address) did not answer within \(vigil.patience). See what it prints."
            )
        }
        if !machine.isWhole {
            let place = feed.map { "\($0.endpoint)" } ?? "the address that the sequencer announces"
            return NodeError(
                code: .unreachable,
                message: troubles.feed.message
                    ?? "Nothing came from the feed at \(place) within \(vigil.patience). See what the sequencer prints."
            )
        }
        return NodeError(
            code: .timedOut,
            message: """
                The sequencer at \(address) answers, but did not open the store within \(vigil.patience). See what \
                it prints: its log may hang.
                """)
    }

    /// Reports which address fails, while the node is disconnected.
    func tellTroubles() {
        guard machine.epoch != .none, !machine.isConnected else { return }
        if let message = troubles.requests.tell() { events(.unreachable(message: message)) }
        if feed != nil, let message = troubles.feed.tell() {
            events(.unreachable(message: message))
        }
    }
}
