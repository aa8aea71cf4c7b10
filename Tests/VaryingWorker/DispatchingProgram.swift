import ConfluxNode
import ConfluxWorker
import Foundation

/// A program like most servers: it hosts a store, dispatches to it as long as it lives, and waits for each receipt
/// for a limited time.
struct DispatchingProgram {
    /// How long a client of the server would wait.
    private static let deadline = Duration.seconds(2)
    /// After how many receipts it says how many it has.
    private static let step = 10

    let address: String
    let name: Name

    init?(_ arguments: [String]) {
        func value(after option: String) -> String? {
            arguments.firstIndex(of: option).map { arguments[$0 + 1] }
        }
        guard let address = value(after: "--connect"),
            let name = value(after: "--name").flatMap({ Name($0) })
        else { return nil }
        self.address = address
        self.name = name
    }

    /// Dispatches one action again and again until the process is asked to end.
    func run<M: Model>(_ model: M.Type, dispatching action: M.Action) async throws {
        let interruption = Interruption.watchSignals()
        let node = try await Node.connect(to: address, settings: NodeSettings(name: name))
        let store = try await node.store(model)
        report("ready", 0)
        var count = 0
        while interruption.reason == nil {
            try await store.dispatch(action).receipt(within: Self.deadline)
            count += 1
            if count.isMultiple(of: Self.step) { report("receipts", count) }
            await Pause.wait(for: .milliseconds(2))
        }
        await node.close()
        report("ended", count)
    }

    private func report(_ event: String, _ count: Int) {
        print(#"{"event":"\#(event)","count":\#(count)}"#)
        fflush(nil)
    }
}
