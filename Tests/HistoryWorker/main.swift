import ConfluxWorker
import Foundation
import Synchronization

/// HistoryWorker ADDRESS NAME NUMBER: performs random operations on three lists until its input ends, and writes the
/// history of its operations.
let arguments = CommandLine.arguments
guard arguments.count == 4, let number = Int(arguments[3]) else { exit(64) }
let isOver = Atomic(false)
let input = Thread {
    while !FileHandle.standardInput.availableData.isEmpty {}
    isOver.store(true, ordering: .relaxed)
}
input.start()

let node = try await Node.connect(
    to: arguments[1], settings: NodeSettings(name: Name(arguments[2])))
var lists: [(name: String, store: ModelStore<Values>)] = []
for name in ["a", "b", "c"] {
    // One of them has an executor of its own, so it may lag behind the others.
    let executor = name == "c" ? Executor.queue(.global()) : .immediate
    lists.append((name, try await node.store(Values.self, named: name, executor: executor)))
}
let recorder = Recorder(process: arguments[2])
try await withThrowingTaskGroup(of: Void.self) { group in
    for client in 0..<3 {
        let first = (number * 10 + client) * 1_000_000
        var client = Client(node: node, lists: lists, recorder: recorder, next: first)
        group.addTask {
            while !isOver.load(ordering: .relaxed) { try await client.step() }
        }
    }
    try await group.waitForAll()
}
// The last word: whatever was promised to anybody is there.
try await Client(node: node, lists: lists, recorder: recorder, next: 0).read(isFresh: true)
await node.close()
