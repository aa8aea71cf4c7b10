import Foundation
import Spawning
import Testing

#if os(Linux)
    extension ProcessTests {
        /// Histories of operations on lists. Their checker shares no code with Conflux.
        struct HistoryTests {
            private static let kinds = [
                "transaction", "dispatch", "condition", "read", "fresh read",
            ]

            @Test
            func `transactions and reads have one order, whatever is killed, stopped or cut`()
                async throws
            {
                try await withSeed { seed in
                    try await withSite { site in
                        let history = try await RecordedCluster(site, seed: seed).run()
                        try await check(history, site, seed)
                        for kind in Self.kinds {
                            let count = history.count {
                                $0.contains(#""kind":"\#(kind)""#)
                                    && $0.contains(#""outcome":"ok""#)
                            }
                            #expect(count >= 5, "\(kind)")
                        }
                    }
                }
            }

            private func check(_ history: [String], _ site: Site, _ seed: UInt64) async throws {
                let path = try site.write(
                    history.joined(separator: "\n") + "\n", to: "history.ndjson")
                let checker = Deployment.path("script/histories/check-history")
                let outcome = try await Tool.outcome(
                    of: try Tool.start(["python3", checker, path], program: "/usr/bin/env"))
                let report = (outcome.output + outcome.errors).joined(separator: "\n")
                if outcome.end == .exited(0) {
                    print("history: \(report), seed \(seed)")
                } else {
                    Issue.record("CONFLUX_SEED=\(seed), \(try keep(path, seed)): \(report)")
                }
            }

            /// Keeps a history with an anomaly, for whoever looks for its cause.
            private func keep(_ path: String, _ seed: UInt64) throws -> String {
                let place = FileManager.default.temporaryDirectory
                    .appendingPathComponent("history-\(seed).ndjson").path
                try FileManager.default.copyItem(atPath: path, toPath: place)
                return place
            }
        }
    }
#endif
