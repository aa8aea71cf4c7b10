import ConfluxWorker
import Foundation

/// LeaseWorker ADDRESS NAME: takes a lease, and acts under it, as its input says. It prints what it learns.
///
///     take    held TOKEN, once it has the lease "cashier"; over, once that is lost
///     act     acted, or the code of the error
///     read    the names of those who acted, in the order of the log
let arguments = CommandLine.arguments
guard arguments.count == 3 else { exit(64) }

/// Who acted, in the order of the log.
struct Diary: Model {
    static let name = "diary"
    var names: [String] = []

    enum Action: Codable, Sendable { case write(String) }

    mutating func apply(_ action: Action, _ context: ActionContext) {
        if case .write(let name) = action { names.append(name) }
    }
}

@Sendable func say(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }

let (lines, continuation) = AsyncStream.makeStream(of: String.self)
let input = Thread {
    while let line = readLine() { continuation.yield(line) }
    continuation.finish()
}
input.start()

let node = try await Node.connect(
    to: arguments[1], settings: NodeSettings(name: Name(arguments[2])))
let store = try await node.store(Diary.self)
var lease: Lease?
for await line in lines {
    switch line {
    case "take":
        let taken = try await node.lease("cashier")
        lease = taken
        say("held \(taken.token)")
        Task {
            await taken.waitUntilOver()
            say("over")
        }
    case "act":
        guard let lease else { exit(64) }
        do {
            try await store.dispatch(.write(arguments[2]), under: lease).receipt()
            say("acted")
        } catch {
            say(error.code.rawValue)
        }
    default:
        try await node.barrier()
        say(store.value.names.joined(separator: " "))
    }
}
await node.close()
