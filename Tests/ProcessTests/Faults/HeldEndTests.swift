#if os(Linux)
    import Conflux
    import EtcdCluster
    import Foundation
    import Spawning
    import Testing

    extension ProcessTests {
        /// Commands that have to end while something keeps them: an output that nobody reads, or etcd that does not
        /// answer.
        struct HeldEndTests {
            /// How long an end may take on a machine that is busy with tests.
            private static let endMax = Duration.seconds(15)

            @Test func `a sequencer whose output is full and unread ends cleanly`() async throws {
                try await withSite { site in
                    let pipe = try UnreadPipe(site.path("pipe"))
                    try pipe.fill()
                    let address = "ipc://\(site.path("requests"))"
                    let child = try site.start(
                        ["sequencer", "--json", "--data", site.path("log"), "--bind", address],
                        output: .file(pipe.path))
                    // A worker waits until the sequencer listens.
                    let worker = try site.start([
                        "worker", "--connect", address, "--store", "counter", "--timeout", "50s",
                    ])
                    _ = try await worker.output.line(0)
                    _ = try await site.dispatch("increment", to: "counter", at: address)
                    child.signal(SIGTERM)
                    #expect(try await child.end(within: Self.endMax) == .exited(0))
                    let check = try await site.run("log", "--verify", site.path("log"))
                    #expect(check.end == .exited(0), "\(check)")
                }
            }

            @Test(arguments: [
                ["log", "--follow", "--json"], ["log", "--json"],
            ])
            func `a command whose output is unread ends, and says that its rest is lost`(
                words: [String]
            ) async throws {
                try await withSite { site in
                    let sequencer = try await site.sequencer()
                    _ = try await site.worker("alpha", of: sequencer, stores: ["counter"])
                    let lines = try site.write(
                        String(repeating: "increment\n", count: 4_000), to: "lines")
                    let sent = try await site.run(
                        "dispatch", "counter", "--file", lines, "--connect", sequencer.address)
                    #expect(sent.end == .exited(0), "\(sent.message.prefix(400))")
                    let pipe = try UnreadPipe(site.path("pipe"))
                    let child = try site.start(
                        words + ["--connect", sequencer.address], output: .file(pipe.path))
                    try await pipe.awaitBytes()
                    child.signal(SIGTERM)
                    let outcome = try await Tool.outcome(of: child, within: Self.endMax)
                    // One that follows has done its work if the signal comes before it has more to write.
                    let ends: [Child.End] =
                        words.contains("--follow") ? [.exited(74), .exited(0)] : [.exited(143)]
                    #expect(ends.contains(outcome.end), "\(outcome)")
                }
            }

            @Test func `a stream whose receipts are unread ends`() async throws {
                try await withSite { site in
                    let sequencer = try await site.sequencer()
                    _ = try await site.worker("alpha", of: sequencer, stores: ["counter"])
                    let pipe = try UnreadPipe(site.path("pipe"))
                    let child = try site.start(
                        [
                            "dispatch", "counter", "-", "--json", "--connect", sequencer.address,
                        ], input: .pipe, output: .file(pipe.path))
                    child.feed(Array(repeating: "increment", count: 4_000))
                    try await pipe.awaitBytes()
                    child.signal(SIGTERM)
                    let end = try await child.end(within: Self.endMax)
                    #expect(end != .killed(SIGTERM))
                }
            }
        }

        /// Sequencers that have to end while etcd does not answer.
        @Suite(.enabled(if: EtcdCluster.isInstalled)) struct HeldEtcdTests {
            @Test func `a standby, a serving sequencer and one that starts end without etcd`()
                async throws
            {
                try await withSite { site in
                    let cluster = try EtcdCluster()
                    let place = cluster.address("conflux")
                    let group = try await site.sequencers(2, log: place)
                    for index in 0..<3 { cluster.signal(SIGSTOP, index) }
                    let starting = try site.start([
                        "sequencer", "--json", "--bind", "tcp://127.0.0.1:0", "--log", place,
                    ])
                    try await handles(SIGTERM, starting)
                    let children = [group.members[1].child, group.members[0].child, starting]
                    for child in children { child.signal(SIGTERM) }
                    for child in children {
                        let end = try await child.end(within: .seconds(15))
                        #expect(end == .exited(0), "\(child.report)")
                    }
                    for index in 0..<3 { cluster.signal(SIGCONT, index) }
                }
            }

            /// Waits until a process handles a signal.
            private func handles(_ signal: Int32, _ child: Child) async throws {
                let deadline = ContinuousClock.now + .seconds(60)
                while ContinuousClock.now < deadline {
                    let status = try String(
                        contentsOfFile: "/proc/\(child.processID)/status", encoding: .utf8)
                    let line = status.split(separator: "\n").first { $0.hasPrefix("SigCgt:") }
                    let mask = line.flatMap {
                        UInt64($0.dropFirst(7).trimmingCharacters(in: .whitespaces), radix: 16)
                    }
                    if let mask, mask >> UInt64(signal - 1) & 1 == 1 { return }
                    let pause = OneTime<Bool>()
                    pause.after(.milliseconds(10), give: true)
                    _ = await pause.value()
                }
                throw Failure("\(child.title) does not handle signal \(signal)")
            }
        }
    }

    /// A pipe with a name, whose reader does not read.
    private final class UnreadPipe {
        let path: String
        private let descriptor: Int32

        init(_ path: String) throws {
            self.path = path
            guard mkfifo(path, 0o600) == 0 else { throw Failure("no pipe: \(systemError())") }
            // Open for both, so that no opener waits for another one.
            descriptor = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
            guard descriptor >= 0 else { throw Failure("no pipe: \(systemError())") }
            // The smallest one has a page. Foundation lacks the name of this command, `F_SETPIPE_SZ`.
            _ = fcntl(descriptor, 1_031, 4_096)
        }

        deinit { close(descriptor) }

        func fill() throws {
            let bytes = [UInt8](repeating: UInt8(ascii: "\n"), count: 4_096)
            while write(descriptor, bytes, bytes.count) > 0 {}
            guard errno == EAGAIN else { throw Failure("the pipe broke: \(systemError())") }
        }

        /// Waits until somebody has written.
        func awaitBytes() async throws {
            let arrived = OneTime<Bool>()
            let descriptor = descriptor
            let thread = Thread {
                var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                arrived.give(poll(&state, 1, 60_000) > 0)
            }
            thread.start()
            guard await arrived.value() else { throw Failure("nothing was written to \(path)") }
        }
    }
#endif
