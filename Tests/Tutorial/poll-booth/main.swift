import ConfluxNode
import Foundation
import PollModel

let arguments = CommandLine.arguments
guard arguments.count == 3 else {
    print("usage: poll-booth VOTER ANSWER")
    exit(64)
}
do {
    let node = try await Node.connect(to: "tcp://127.0.0.1:7400")
    let (poll, roll) = (try await node.store(Poll.self), try await node.store(Roll.self))
    let place = try await node.transaction { tx in
        try tx.dispatch(.sign(voter: arguments[1]), to: roll)
        try tx.dispatch(.vote(answer: arguments[2]), to: poll)
        return try tx.read(roll).voters.count
    }.value
    print("voter \(place): \(poll.summary)")
    await node.close()
} catch {
    print(error)
    exit(1)
}
