import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// Workers with code of their own: see Tests/VaryingWorker.
    struct OwnCodeTests {
        private let ten = #"{"add":{"amount":10}}"#

        @Test
        func `own code finds current stores, says when it is ready, and ends with the worker`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                _ = try await site.varyingWorker("first", hosting: "ledger", of: sequencer)
                try await dispatch(#"{"add":{"amount":4}}"#, site, sequencer)
                let child = try start(.serves, site, sequencer)
                #expect(try await site.event("began", of: child)[key: "total"] == 4)
                try await dispatch(#"{"add":{"amount":6}}"#, site, sequencer)
                _ = try await site.event("ready", of: child)
                child.signal(SIGTERM)
                let outcome = try await Tool.outcome(of: child)
                #expect(outcome.end == .exited(0), "\(outcome)")
                #expect(outcome.errors.isEmpty, "\(outcome)")
                let events = try outcome.output.compactMap { try object($0)[key: "event"]?.string }
                #expect(
                    events.filter {
                        ["began", "saw", "ready", "cancelled", "stopped"].contains($0)
                    }
                        == ["began", "saw", "ready", "cancelled", "stopped"])
            }
        }

        @Test func `a worker whose own code has returned goes on`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let child = try start(.returns, site, sequencer)
                _ = try await site.event("ready", of: child)
                try await dispatch(ten, site, sequencer)
                child.signal(SIGTERM)
                #expect(try await child.end() == .exited(0), "\(child.report)")
            }
        }

        @Test func `a worker whose own code throws leaves, and says why`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let child = try start(.throwing, site, sequencer)
                _ = try await site.event("ready", of: child)
                _ = try await site.dispatch(ten, to: "ledger", at: sequencer.address)
                let outcome = try await Tool.outcome(of: child)
                #expect(outcome.end == .exited(70), "\(outcome)")
                let error = try object(outcome.errors.last ?? "")[key: "error"]
                #expect(error?[key: "code"] == "ownCodeFailed", "\(outcome)")
                #expect(error?[key: "message"]?.string?.hasSuffix("the ledger is spoilt") == true)
                #expect(try await site.liveNodes(at: sequencer.address).isEmpty)
            }
        }

        @Test func `a worker does not wait for ever for its own code`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let child = try start(.stubborn, site, sequencer)
                _ = try await site.event("ready", of: child)
                child.signal(SIGTERM)
                let outcome = try await Tool.outcome(of: child)
                #expect(outcome.end == .exited(0), "\(outcome)")
                #expect(outcome.errors.contains { $0.contains("Task.isCancelled") }, "\(outcome)")
                #expect(try await site.liveNodes(at: sequencer.address).isEmpty)
            }
        }

        private enum Code: String { case serves, returns, throwing, stubborn }

        private func start(
            _ code: Code, _ site: Site, _ sequencer: RunningSequencer
        ) throws -> Child {
            try site.start(
                ["--json", "--connect", sequencer.address, "--name", "own"],
                program: "VaryingWorker", variables: ["VARYING_CODE": code.rawValue])
        }

        /// Dispatches to the ledger, and waits until a worker has applied the action.
        private func dispatch(
            _ action: String, _ site: Site, _ sequencer: RunningSequencer
        ) async throws {
            _ = try await site.dispatch(
                action, to: "ledger", at: sequencer.address, "--wait", "applied")
        }
    }
}
