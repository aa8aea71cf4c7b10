import ConfluxWorker
import PollModel

/// Stands for a mail service. It refuses a lower token than it has seen.
@Sendable func send(_ text: String, token: SequenceNumber) {
    print("mail \(token): \(text)")
}

await Worker.main("poll-mailer", version: "1.0.0", states: [HostedState(Poll.self)]) { node in
    let poll = try await node.store(Poll.self)
    while !Task.isCancelled {
        do {
            // Of all mailers, one is in here. The others wait for their turn.
            try await node.withLease("mailer") { lease in
                for await summary in poll.changed(\.summary).values {
                    send(summary, token: lease.token)
                }
            }
        } catch let error as DispatchError where error.code == .leaseLost {
            // Its turn was over before it began. Ask again.
            continue
        }
    }
}
