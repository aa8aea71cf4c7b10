import CZeroMQ
import ConfluxProtocol
import ConfluxVocabulary
import Foundation
import Spawning
import Testing

#if os(Linux)
    extension ProcessTests {
        /// Who stalls, floods, or comes in masses costs the sequencer no more memory than is
        /// stated, and others nothing.
        struct BoundTests {
            /// How much larger the loads are than in a quick run.
            private static let scale =
                ProcessInfo.processInfo.environment["CONFLUX_BOUNDS"].flatMap { Int($0) } ?? 1
            /// The most memory that a sequencer has under each of these. Its queue of the feed
            /// holds 16 MiB for one that does not read.
            private static let boundBytes = 128 << 20

            /// Runs a body beside a sequencer with its log on the disk and two workers, which must be
            /// unharmed afterwards.
            private func withBound(
                _ what: String, _ body: (Witness) async throws -> Void
            ) async throws {
                try await withWitness(data: "log") { witness in
                    try await body(witness)
                    try witness.site.expectMemory(
                        of: witness.sequencer, below: Self.boundBytes, what)
                }
            }

            /// More than the bound, in actions of a megabyte.
            private func load(_ witness: Witness) async throws {
                let address = witness.address
                try await onThread {
                    try RawNode(at: address).load(240 * Self.scale, payloadBytes: 1 << 20)
                }
            }

            @Test func `a worker that is stopped`() async throws {
                try await withBound("a worker that is stopped") { witness in
                    let stopped = try await witness.site.worker(
                        "stopped", of: witness.sequencer)
                    stopped.child.signal(SIGSTOP)
                    try await load(witness)
                    stopped.child.signal(SIGCONT)
                }
            }

            @Test func `a subscriber that never reads`() async throws {
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

            @Test func `answers to fetches that nobody reads`() async throws {
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
                            // Who reads on and says so is always answered.
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

            @Test func `questions whose answers nobody reads, and frames beyond all windows`()
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
                            // Who does not read is cut off in the end.
                            guard node.say(.question(question)) else { return }
                            // Not more of these with the scale: what waits to be read by the
                            // sequencer is bounded in number, too, at some hundred megabytes.
                            if number % 4 == 0, number < 2_000 { node.peer.send(large) }
                            if number % 20 == 0 { node.greet() }
                        }
                    }
                }
            }

            @Test func `a host that answers but never advances`() async throws {
                try await withBound("a host that never advances") { witness in
                    let address = witness.address
                    try await onThread {
                        let node = try RawNode(at: address, name: "lazy")
                        node.say(
                            .open(
                                Open(
                                    request: 1, subject: .store(StoreName("load/lazy")!),
                                    schemaVersion: 1, events: [],
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
