import CZeroMQ
@testable import ConfluxProtocol
import ConfluxVocabulary
import Foundation
import Spawning
import Testing

#if os(Linux)
    extension ProcessTests {
        /// Clients that stall, that flood the sequencer, or that connect in masses cost it no more memory
        /// than is documented, and don't affect other clients.
        struct BoundTests {
            /// The factor by which the loads are larger than in a quick run.
            private static let scale =
                ProcessInfo.processInfo.environment["CONFLUX_BOUNDS"].flatMap { Int($0) } ?? 1
            /// The most memory that a sequencer may use under each of these loads. Its feed's queue holds
            /// up to 16 MiB for a subscriber that doesn't read.
            private static let boundBytes = 128 << 20

            /// Runs a body beside a sequencer, whose log is on disk, and two workers. They must be unharmed
            /// afterwards.
            private func withBound(
                _ what: String, _ body: (Witness) async throws -> Void
            ) async throws {
                try await withWitness(data: "log") { witness in
                    try await body(witness)
                    try witness.site.expectMemory(
                        of: witness.sequencer, below: Self.boundBytes, what)
                }
            }

            /// Submits more bytes than the bound, in actions of one mebibyte.
            private func load(_ witness: Witness) async throws {
                let address = witness.address
                try await onThread {
                    try RawNode(at: address).load(240 * Self.scale, payloadBytes: 1 << 20)
                }
            }

            @Test func `a stopped worker does not fill the sequencer's memory`() async throws {
                try await withBound("a worker that is stopped") { witness in
                    let stopped = try await witness.site.worker(
                        "stopped", of: witness.sequencer)
                    stopped.child.signal(SIGSTOP)
                    try await load(witness)
                    stopped.child.signal(SIGCONT)
                }
            }

            @Test func `a subscriber that never reads does not fill the sequencer's memory`()
                async throws
            {
                try await withBound("a subscriber that never reads") { witness in
                    let feed = witness.sequencer.feed
                    let isProven = OneTime<Bool>()
                    let end = DispatchSemaphore(value: 0)
                    async let subscriber: Void = onThread {
                        let peer = try RawPeer(ZMQ_SUB, receivesAtMost: 1)
                        peer.subscribe()
                        try peer.connect(feed)
                        isProven.give(peer.receive() != nil)
                        end.wait()
                    }
                    #expect(await isProven.value())
                    do {
                        try await load(witness)
                    } catch {
                        end.signal()
                        throw error
                    }
                    end.signal()
                    try await subscriber
                }
            }

            @Test func `unread answers to fetches do not fill the sequencer's memory`() async throws
            {
                try await withBound("answers to fetches that nobody reads") { witness in
                    let address = witness.address
                    let scale = Self.scale
                    try await onThread {
                        let member = try RawNode(at: address)
                        try member.load(8, payloadBytes: 1 << 20)
                        let hostile = try RawNode(at: address, role: .observer, receivesAtMost: 1)
                        var tag: UInt64 = 0
                        for request in 0..<120 * UInt64(scale) {
                            let from = SequenceNumber(member.welcome.last.rawValue + 1)
                            for _ in 0..<4 {
                                let fetch = Fetch(request: request, from: from, limitBytes: 4 << 20)
                                guard hostile.say(.fetch(fetch)) else { return }
                            }
                            // A client that reads its answers, and acknowledges them, always gets more.
                            let fetch = Fetch(
                                request: request, from: from.advanced(by: request % 8),
                                limitBytes: 1, acknowledged: tag)
                            member.say(.fetch(fetch))
                            guard case .entries(let entries) = try member.hear() else {
                                throw Failure("no answer to fetch \(request)")
                            }
                            tag = entries.deliveryTag
                        }
                    }
                }
            }

            @Test
            func `unread answers and frames beyond all windows do not fill the sequencer's memory`()
                async throws
            {
                try await withBound("a flood of questions, hellos and submits") { witness in
                    let address = witness.address
                    let scale = Self.scale
                    try await onThread {
                        let node = try RawNode(at: address, receivesAtMost: 1)
                        let large = node.submission(payloadBytes: 256 << 10)
                        for number in 0..<2_000 * UInt64(scale) {
                            let question = Question(
                                number: number, patience: .seconds(60), body: .status)
                            // A client that doesn't read its answers is disconnected in the end.
                            guard node.say(.question(question)) else { return }
                            // The number of these doesn't grow with the scale: the number of messages that wait for
                            // the sequencer to read them is bounded, too, at some hundred megabytes.
                            if number % 4 == 0, number < 2_000 { node.peer.send(large) }
                            if number % 20 == 0 { node.greet() }
                        }
                    }
                }
            }

            @Test func `a host that never advances does not fill the sequencer's memory`()
                async throws
            {
                try await withBound("a host that never advances") { witness in
                    let address = witness.address
                    try await onThread {
                        let node = try RawNode(at: address, name: "lazy")
                        node.say(
                            .open(
                                Open(
                                    request: 1, subject: .store(StoreName("load/lazy")!),
                                    versions: SupportedVersions(1), events: [],
                                    initial: EncodedState(
                                        coding: .json, bytes: Array("0".utf8)[...]))))
                        guard case .opened = try node.hear() else { throw Failure("not opened") }
                        try node.load(200, payloadBytes: 64 << 10)
                        node.say(.progress(Progress(applied: .zero, settled: 0)))
                    }
                }
            }

            @Test func `five thousand sessions come and go`() async throws {
                try await withBound("5,000 sessions") { witness in
                    let address = witness.address
                    try await onThread {
                        for wave in 0..<20 {
                            try RawCrowd(250).comeAndGo(at: address, saysBye: wave % 2 == 0)
                        }
                    }
                }
            }
        }
    }
#endif
