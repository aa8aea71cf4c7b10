import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// A worker that votes like the others, and sends another state than the one that it voted for, or none.
    struct LyingHostTests {
        @Test(.timeLimit(.minutes(3)), arguments: LyingRelay.Lie.allCases)
        func `a host that lies is passed over and named, and another one's state is kept`(
            lie: LyingRelay.Lie
        ) async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer(data: "log")
                let relay = try LyingRelay(to: sequencer.address, lie)
                async let relayed: Void = onThread { try relay.run() }
                defer { relay.stop() }
                // The first host is the first that is asked.
                for (name, address) in [
                    ("mallory", relay.address), ("beta", sequencer.address),
                    ("gamma", sequencer.address),
                ] {
                    _ = try await site.worker(
                        name, of: sequencer, stores: ["document"], at: address)
                }
                // More bytes than the sequencer keeps without a snapshot, of a state that is small beside them.
                let lines = (0..<80).map { number in
                    let text = String(repeating: "\(number % 10)", count: 100_000)
                    return #"{"set":{"at":"/text","value":"\#(text)"}}"#
                }
                let last = try await site.dispatch(
                    lines: lines, to: "document/*", at: sequencer.address)

                let told = try await site.event("sourcePassedOver", of: sequencer.child)
                #expect(told[key: "store"] == "document/shared")
                #expect(told[key: "name"] == "mallory")
                let point = try #require(told[key: "sequence"]?.number)
                let taken = try await site.event("snapshot", of: sequencer.child) {
                    $0[key: "sequence"]?.number == point
                }
                #expect(taken[key: "store"] == "document/shared")
                // Nobody else is blamed, and a newcomer begins with the true state.
                let passedOver = try sequencer.child.output.soFar.map { try object($0) }
                    .filter { $0[key: "event"] == "sourcePassedOver" }
                #expect(passedOver.allSatisfy { $0[key: "name"] == "mallory" })
                _ = try await site.worker("delta", of: sequencer, stores: ["document"])
                let seen = try await site.sightings(
                    of: "document", at: sequencer.address,
                    in: ["mallory", "beta", "gamma", "delta"], from: last)
                #expect(Set(seen.map(\.state)).count == 1)
                relay.stop()
                try await relayed
            }
        }
    }
}
