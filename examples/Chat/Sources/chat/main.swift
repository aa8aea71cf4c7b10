import ChatModel
import ConfluxNode
import Foundation

guard CommandLine.arguments.count == 2 || CommandLine.arguments.count == 3 else {
    print("usage: chat NAME [ROOM]")
    exit(64)
}
let name = CommandLine.arguments[1]
let roomName = CommandLine.arguments.count == 3 ? CommandLine.arguments[2] : "shared"
let address = ProcessInfo.processInfo.environment["CONFLUX_CONNECT"] ?? "tcp://127.0.0.1:7400"

/// Prints new lines of the room, from this process's replica.
func show(_ room: ModelStore<Room>) async {
    var shown = 0
    for await lines in room.changed(\.lines).values {
        for line in lines where line.number > shown { print(line) }
        shown = lines.last?.number ?? shown
    }
}

/// The typed lines, until Ctrl-D.
let typed = AsyncStream<String> { lines in
    Thread.detachNewThread {
        while let line = readLine() { lines.yield(line) }
        lines.finish()
    }
}

/// Dispatches each typed line.
func speak(in room: ModelStore<Room>) async throws(DispatchError) {
    for await text in typed where !text.isEmpty {
        do throws(DispatchError) {
            try await room.dispatch(.say(name: name, text: text)).receipt()
        } catch {
            guard error.code == .refused else { throw error }
            print("not said: \(error.message)")
        }
    }
}

do {
    let node = try await Node.connect(to: address)
    let room = try await node.store(Room.self, named: roomName)
    try await room.dispatch(.join(name: name)).receipt()
    let showing = Task { await show(room) }
    try await speak(in: room)
    try await room.dispatch(.leave(name: name)).receipt()
    showing.cancel()
    await node.close()
} catch {
    FileHandle.standardError.write(Data("chat: \(error)\n".utf8))
    exit(1)
}
