import ConfluxBuiltins
import ConfluxNode

/// Is only compiled: it names a port that may be somebody else's.
func count() async throws {
    let node = try await Node.connect(to: "tcp://127.0.0.1:7400")
    let counter = try await node.store(CounterState.self)
    try await counter.actions.dispatch(.add(amount: 5)).receipt()
    print(counter.computed.count)

    let document = try await node.store(Document.self)
    try await document.dispatch(.set(at: "/theme", value: "dark")).receipt()
    print(document.root)
}
