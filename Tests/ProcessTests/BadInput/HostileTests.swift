import CZeroMQ
import Conflux
import Foundation
import Spawning
import Testing

/// Peers that don't speak the protocol, or speak another version: nobody else notices.
struct HostileTests {
    /// The kind of a `bye` from a node, and of one from a sequencer.
    private static let bye: UInt8 = 0x12
    private static let farewell: UInt8 = 0x4E
    /// The code of a bye that says that the peer speaks another version.
    private static let versionCode: [UInt8] = [5, 0]

    @Test func `a node of another version learns it`() async throws {
        try await withWitness { witness in
            let address = witness.address
            let answer = try await onThread { () -> [[UInt8]]? in
                let peer = try RawPeer(ZMQ_DEALER)
                try peer.connect(address)
                peer.send(RawPeer.header(version: 2, kind: 0x01) + [1, 2, 3])
                return peer.receive()
            }
            let frame = try #require(answer?.first)
            #expect(answer?.count == 1)
            #expect(frame[4] == 1 && frame[5] == Self.farewell)
            // After the header and the number of the hello that this bye answers.
            #expect(Array(frame[32..<34]) == Self.versionCode)
            #expect(String(decoding: frame[36...], as: UTF8.self).contains("version 2"))
        }
    }

    @Test(arguments: [true, false])
    func `a sequencer of another version is reported`(saysBye: Bool) async throws {
        let message = Array("only version 2 is spoken here".utf8)
        let bye =
            [UInt8](repeating: 0, count: 8) + Self.versionCode + [UInt8(message.count), 0] + message
        let answer =
            saysBye
            ? RawPeer.header(version: 2, kind: Self.farewell) + bye
            : RawPeer.header(version: 2, kind: 0x41) + [UInt8](repeating: 0xEE, count: 100)
        try await withImpostor(answering: answer) { address in
            for command in Self.commands {
                let outcome = try await Tool.outcome(
                    of: try Tool.start(command + ["--connect", address, "--json"]))
                #expect(outcome.end == .exited(85), "\(outcome.title): \(outcome.message)")
                let line = try #require(outcome.errors.last ?? outcome.output.last)
                let said = try object(line)[key: "error"]?[key: "message"]?.string
                #expect(said?.contains("version 2") == true, "\(line)")
                #expect(said?.contains(address) == true, "\(line)")
            }
        }
    }

    @Test func `unreadable answers do not count`() async throws {
        let noise = RawPeer.header(version: 1, kind: 0x41) + [UInt8](repeating: 0xEE, count: 100)
        try await withImpostor(answering: noise) { address in
            for command in Self.commands {
                let outcome = try await Tool.outcome(
                    of: try Tool.start(
                        command + ["--connect", address, "--json", "--timeout", "300ms"]))
                #expect(outcome.end == .exited(69), "\(outcome.title): \(outcome.message)")
                #expect(outcome.message.contains(address), "\(outcome.message)")
            }
        }
    }

    private static let commands = [
        ["worker", "--name", "alpha"], ["dispatch", "counter/*", "increment"],
        ["observe", "counter"], ["log"], ["status"],
    ]

    /// Runs a test's body beside a socket that gives the same answer to every message.
    private func withImpostor(
        answering answer: [UInt8], _ body: (String) async throws -> Void
    ) async throws {
        let place = OneTime<String>()
        let stop: [UInt8] = [0]
        let stopped = DispatchSemaphore(value: 0)
        async let serving: Void = onThread {
            defer { stopped.signal() }
            let peer = try RawPeer(ZMQ_ROUTER)
            place.give(try peer.bind())
            // On a busy machine, it may take a while until somebody connects.
            while true {
                guard let parts = peer.receive() else { continue }
                if parts[1] == stop { return }
                peer.send(parts[0], answer)
            }
        }
        let address = await place.value()
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(address))
        } catch {
            result = .failure(error)
        }
        try await onThread {
            let peer = try RawPeer(ZMQ_DEALER)
            try peer.connect(address)
            peer.send(stop)
            stopped.wait()
        }
        try await serving
        try result.get()
    }

    @Test func `random frames harm nobody`() async throws {
        try await withWitness { witness in
            let seed = UInt64.random(in: 0...UInt64.max)
            let (address, feed) = (witness.address, witness.sequencer.feed)
            try await onThread {
                for (type, place) in [(ZMQ_DEALER, address), (ZMQ_XSUB, feed)] {
                    let peer = try RawPeer(type)
                    try peer.connect(place)
                    var random = SplitMix64(seed: seed)
                    for _ in 0..<2_000 {
                        let count = Int.random(in: 0...200, using: &random)
                        var frame = (0..<count).map { _ in
                            UInt8.random(in: .min ... .max, using: &random)
                        }
                        // Half of them have a valid header.
                        if Bool.random(using: &random) {
                            frame =
                                RawPeer.header(
                                    version: 1, kind: UInt8.random(in: 0...0x90, using: &random))
                                + frame
                        }
                        guard peer.send(frame) else { throw Failure("nobody reads at \(place)") }
                    }
                }
            }
            print("random frames of seed \(seed)")
        }
    }

    @Test func `frames above the limit and frames in parts harm nobody`() async throws {
        try await withWitness { witness in
            let (address, feed) = (witness.address, witness.sequencer.feed)
            try await onThread {
                for (type, place) in [(ZMQ_DEALER, address), (ZMQ_XSUB, feed)] {
                    let hello = RawPeer.header(version: 1, kind: 0x01)
                    let parts = try RawPeer(type)
                    try parts.connect(place)
                    parts.send(hello, hello, hello)
                    parts.send([], hello)
                    parts.send([])
                    let large = try RawPeer(type)
                    try large.connect(place)
                    large.send(hello + [UInt8](repeating: 0, count: 65 << 20))
                    // The connection was closed, or the frame was answered. Either way the frame was read.
                    large.send(hello)
                    if type == ZMQ_DEALER { _ = large.receive() }
                }
            }
        }
    }

    @Test func `bytes that are not even ZMTP harm nobody`() async throws {
        try await withWitness { witness in
            let seed = UInt64.random(in: 0...UInt64.max)
            for place in [witness.address, witness.sequencer.feed] {
                try await onThread {
                    var random = SplitMix64(seed: seed)
                    let texts: [[UInt8]] = [
                        Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8), [0], [0xFF],
                        (0..<100_000).map { _ in UInt8.random(in: .min ... .max, using: &random) },
                        // A truncated greeting of ZMTP 3, and a greeting with an unknown mechanism.
                        [0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 3],
                        [0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 3, 0] + Array("NONSENSE".utf8)
                            + [UInt8](repeating: 0, count: 44),
                    ]
                    for text in texts {
                        let connection = try RawConnection(to: place)
                        connection.send(text)
                    }
                }
            }
        }
    }
}
