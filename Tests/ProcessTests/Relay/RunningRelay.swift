import Conflux
import Foundation
import Spawning
import Testing

/// A relay that was ready.
struct RunningRelay: Sendable {
    let child: Child
    let address: String
}

extension Site {
    /// Starts a relay, and waits until it is ready. It has a free port, or an address.
    func relay(
        of feed: String, at address: String = "tcp://127.0.0.1:0", options: [String] = []
    ) async throws -> RunningRelay {
        let child = try start(["relay", "--json", "--feed", feed, "--bind", address] + options)
        let ready = try await event("ready", of: child)
        return RunningRelay(child: child, address: try #require(ready[key: "address"]?.string))
    }

    /// Expects that a worker has its feed from a relay: it says so when the relay is killed.
    func expect(
        _ worker: RunningWorker, toFollow relay: RunningRelay, falling address: String
    ) async throws {
        try await relay.child.destroy()
        let event = try await event("feedFellBack", of: worker.child)
        #expect(event[key: "from"]?.string == relay.address)
        #expect(event[key: "to"]?.string == address)
    }

    /// Waits until the counter of a worker has a value.
    func counter(_ value: Int, in worker: RunningWorker, of sequencer: RunningSequencer)
        async throws
    {
        let child = try start([
            "observe", "counter", "--follow", "--json", "--connect", sequencer.address,
        ])
        let wanted = #"{"count":\#(value)}"#
        _ = try await child.output.first { line in
            let sighting = try Sighting(line, of: "counter")
            return sighting.node == worker.name && sighting.state == wanted
        }
        child.signal(SIGINT)
        _ = try await child.end()
    }
}
