import Foundation
import Testing

#if os(Linux)
    extension ProcessTests {
        /// All kinds of faults at once, under load.
        struct FaultTests {
            /// How often each fault happens.
            private static let countName = "CONFLUX_FAULTS"

            @Test func `nothing is lost, doubled or reordered whatever is killed, stopped or cut`()
                async throws
            {
                let given = ProcessInfo.processInfo.environment[Self.countName]
                let count = try #require(Int(given ?? "2"), "\(Self.countName) is no number")
                try await withSeed { seed in
                    print("faults: \(count) of each; to repeat: CONFLUX_SEED=\(seed)")
                    try await withSite { site in
                        try await FaultedCluster(site, seed: seed).run(count)
                    }
                }
            }
        }
    }
#endif
