import ConfluxNode
import PollModel

let node = try await Node.connect(to: "tcp://127.0.0.1:7400")
let poll = try await node.store(Poll.self)

if let answer = CommandLine.arguments.dropFirst().first {
    do {
        let receipt = try await poll.dispatch(.vote(answer: answer)).receipt()
        print("entry \(receipt.sequence): \(poll.summary)")
    } catch {
        print("\(error.code): \(error.message)")
    }
} else {
    for await summary in poll.changed(\.summary).values { print(summary) }
}
await node.close()
