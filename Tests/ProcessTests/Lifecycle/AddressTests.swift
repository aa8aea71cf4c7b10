import Foundation
import Testing

/// The addresses to which a sequencer binds and a node connects.
struct AddressTests {
    /// Whether this machine has the loopback address of IPv6.
    private static let hasIPv6: Bool = {
        #if os(Linux)
            let addresses = try? String(contentsOfFile: "/proc/net/if_inet6", encoding: .utf8)
            return addresses?.contains("00000000000000000000000000000001") ?? false
        #else
            return true
        #endif
    }()

    @Test(.enabled(if: hasIPv6), arguments: [[], ["--feed", "tcp://[::1]:0"]])
    func `sequencer and nodes work at an IPv6 address`(feed: [String]) async throws {
        try await withSite { site in
            let child = try site.start(
                ["sequencer", "--json", "--memory", "--bind", "tcp://[::1]:0"] + feed)
            let (_, line) = try await child.output.first { $0.contains("\"ready\"") }
            let ready = try object(line)
            let sequencer = RunningSequencer(
                child: child, address: try #require(ready[key: "address"]?.string),
                feed: try #require(ready[key: "feed"]?.string), ready: ready)
            #expect(sequencer.address.hasPrefix("tcp://[::1]:"))
            #expect(sequencer.feed.hasPrefix("tcp://[::1]:"))
            _ = try await site.worker("alpha", of: sequencer)
            let sequence = try await site.dispatch(
                "increment", to: "counter", at: sequencer.address)
            let sightings = try await site.sightings(
                of: "counter", at: sequencer.address, in: ["alpha"], from: sequence)
            #expect(sightings.count == 1)
        }
    }
}
