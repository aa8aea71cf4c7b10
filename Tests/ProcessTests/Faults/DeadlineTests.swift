import Conflux
import ConfluxBuiltins
import ConfluxNode
import Foundation
import Testing

extension ProcessTests {
    /// Programs that wait, with a deadline, for a sequencer in another process.
    struct DeadlineTests {
        private static let limit = Duration.milliseconds(500)

        /// Runs a wait that must end at the deadline, and not more than a second later.
        private func late(
            _ awaited: String, at address: String,
            _ wait: () async throws(DispatchError) -> Void
        ) async {
            let begun = ContinuousClock.now
            do throws(DispatchError) {
                try await wait()
                Issue.record("it did not wait for \(awaited)")
            } catch {
                let time = ContinuousClock.now - begun
                #expect(time >= Self.limit && time < Self.limit + .seconds(1), "\(awaited)")
                #expect(error.code == .timedOut)
                #expect(error.message.contains(address), "\(error)")
                #expect(error.message.contains(awaited), "\(error)")
            }
        }

        private func withNode(
            _ body: (RunningSequencer, Node) async throws -> Void
        ) async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                var settings = NodeSettings()
                settings.closeTimeout = .zero
                let node = try await Node.connect(
                    to: sequencer.address, settings: settings, scope: Scope())
                try await body(sequencer, node)
                await node.close()
            }
        }

        @Test func `a sequencer that serves gives the receipt before the deadline`() async throws {
            try await withNode { _, node in
                let counter = try await node.store(CounterState.self)
                let handle = counter.actions.dispatch(.increment)
                let receipt = try await handle.receipt(within: .seconds(60))
                #expect(try await handle.withdraw(within: .seconds(60)) == receipt)
            }
        }

        @Test(arguments: [SIGSTOP, SIGKILL])
        func `waits for a sequencer that is stopped or gone end at their deadlines`(
            signal: Int32
        ) async throws {
            try await withNode { sequencer, node in
                let address = sequencer.address
                let counter = try await node.store(CounterState.self)
                sequencer.child.signal(SIGSTOP)
                let handle = counter.actions.dispatch(.increment)
                await late("No receipt", at: address) { () throws(DispatchError) in
                    try await handle.receipt(within: Self.limit)
                }
                // The action was sent, so only the sequencer knows whether it is in the log.
                if signal != SIGSTOP { sequencer.child.signal(signal) }
                await late("the withdrawal", at: address) { () throws(DispatchError) in
                    try await handle.withdraw(within: Self.limit)
                }
                await late("No receipt", at: address) { () throws(DispatchError) in
                    try await handle.receipt(within: Self.limit)
                }
                guard signal == SIGSTOP else { return }
                sequencer.child.signal(SIGCONT)
                let receipt = try await handle.withdraw(within: .seconds(60))
                #expect(counter.computed.count == (receipt == nil ? 0 : 1))
            }
        }

        @Test(arguments: [SIGSTOP, SIGKILL])
        func `a node without stores notices within two seconds that its sequencer is gone`(
            signal: Int32
        ) async throws {
            try await withNode { sequencer, node in
                let events = node.events
                let found = OneTime<NodeEvent?>()
                let reader = Task {
                    for await event in events where event == .disconnected {
                        return found.give(event)
                    }
                }
                // A second more than is promised, for a machine that is busy with tests.
                found.after(.seconds(3), give: nil)
                sequencer.child.signal(signal)
                #expect(await found.value() == .disconnected)
                reader.cancel()
            }
        }
    }
}
