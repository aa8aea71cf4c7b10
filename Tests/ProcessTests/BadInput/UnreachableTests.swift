import Foundation
import Testing

/// Addresses at which no sequencer is running.
struct UnreachableTests {
    private func status(_ site: Site, _ address: String) async throws -> Tool.Outcome {
        try await site.run("status", "--connect", address, within: .seconds(60))
    }

    /// A port at which a socket listens and never answers.
    private final class Silence {
        let descriptor: Int32
        let port: UInt16

        /// - Parameter isListening: Whether connections are accepted. Either way the port is occupied, so that no
        ///   other test gets it.
        /// - Throws: An error if there is no port.
        init(isListening: Bool = true) throws {
            #if canImport(Darwin)
                descriptor = socket(AF_INET, SOCK_STREAM, 0)
            #else
                descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            #endif
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let descriptor = self.descriptor
            let isBound = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, length) == 0
                        && (!isListening || listen(descriptor, 8) == 0)
                        && getsockname(descriptor, $0, &length) == 0
                }
            }
            try #require(isBound)
            port = UInt16(bigEndian: address.sin_port)
        }

        deinit { close(descriptor) }
    }

    @Test func `a command says why nobody answers`() async throws {
        try await withSite { site in
            let sequencer = try await site.sequencer()
            let silence = try Silence()
            let stranger = "tcp://127.0.0.1:\(silence.port)"
            for (address, words) in [
                (sequencer.feed, "may be its feed's"), (stranger, "does not answer"),
                ("tcp://nobody.invalid:7400", "has no address"),
            ] {
                let outcome = try await status(site, address)
                #expect(outcome.end == .exited(69), "\(outcome)")
                #expect(outcome.message.contains(words), "\(outcome)")
            }
            withExtendedLifetime(silence) {}
            sequencer.child.signal(SIGTERM)
            _ = try await sequencer.child.end()
            let gone = try await status(site, sequencer.address)
            #expect(gone.end == .exited(69) && gone.message.contains("Nothing listens"), "\(gone)")
        }
    }

    @Test func `if all addresses fail, the message has the reason for each`() async throws {
        try await withSite { site in
            let (silent, nobody) = (try Silence(), try Silence(isListening: false))
            let addresses = [silent, nobody].map { "tcp://127.0.0.1:\($0.port)" }
            for order in [addresses, addresses.reversed()] {
                let outcome = try await site.run(
                    "status", "--connect", order.joined(separator: ","), "--timeout", "5s",
                    within: .seconds(60))
                #expect(outcome.end == .exited(69), "\(outcome)")
                for words in [
                    "Something listens at \(addresses[0])", "Nothing listens at \(addresses[1])",
                ] {
                    #expect(outcome.message.contains(words), "\(outcome)")
                }
            }
            let refused = try Silence(isListening: false)
            let dead = [refused, nobody].map { "tcp://127.0.0.1:\($0.port)" }
            let outcome = try await status(site, dead.joined(separator: ","))
            withExtendedLifetime((silent, nobody, refused)) {}
            #expect(dead.allSatisfy { outcome.message.contains("Nothing listens at \($0)") })
        }
    }

    @Test func `a worker waits for a sequencer that is not there yet, and then says why`()
        async throws
    {
        try await withSite { site in
            let nobody = try Silence(isListening: false)
            let outcome = try await site.run(
                "worker", "--connect", "tcp://127.0.0.1:\(nobody.port)", "--timeout", "2s",
                within: .seconds(60))
            withExtendedLifetime(nobody) {}
            #expect(outcome.end == .exited(69))
            #expect(outcome.message.contains("Nothing listens"), "\(outcome)")
        }
    }
}
