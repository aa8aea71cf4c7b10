import ConfluxNode
import Foundation
import PollModel

do {
    let node = try await Node.connect(to: "tcp://127.0.0.1:7400")
    let poll = try await node.store(Poll.self)
    if let answer = CommandLine.arguments.dropFirst().first {
        let receipt = try await poll.dispatch(.vote(answer: answer)).receipt()
        print("entry \(receipt.sequence): \(poll.summary)")
    } else {
        for await summary in poll.changed(\.summary).values { print(summary) }
    }
    await node.close()
} catch {
    print(error)
    exit(1)
}
