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
            /// How long an end may take, and a second for a machine that is busy.
            private static let promised = Duration.seconds(6)

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
                (["log"], 143), (["log", "--follow", "--from", "LAST"], 74),
                (["observe", "document", "--follow"], 74), (["status", "--watch"], 74),
            ])
            func `a command whose output is unread ends, and says that its rest is lost`(
                words: [String], code: Int
            ) async throws {
                try await withSite { site in
                    let sequencer = try await site.sequencer()
                    let stores = (1...60).map { "counter/\($0)" }
                    _ = try await site.worker("alpha", of: sequencer, stores: ["document"] + stores)
                    // The pipe takes less than one line, so the rest of that line is unread for certain. All lines
                    // are more than a command keeps in its memory.
                    let long = String(repeating: "x", count: 20_000)
                    let action = #"{"set":{"at":"/long","value":"\#(long)"}}"#
                    let actions = try site.write(
                        String(repeating: action + "\n", count: 6), to: "actions")
                    let sent = try await site.run(
                        "dispatch", "document", "--file", actions, "--wait", "applied",
                        "--connect", sequencer.address)
                    #expect(sent.end == .exited(0), "\(sent.message.prefix(400))")
                    let last = try await site.dispatch(
                        action, to: "document", at: sequencer.address, "--wait", "applied")
                    let words = words.map { $0 == "LAST" ? "\(last)" : $0 }
                    let pipe = try UnreadPipe(site.path("pipe"))
                    let child = try site.start(
                        words + ["--json", "--connect", sequencer.address],
                        output: .file(pipe.path))
                    try await pipe.awaitBytes()
                    child.signal(SIGTERM)
                    let begun = ContinuousClock.now
                    let outcome = try await Tool.outcome(of: child, within: Self.endMax)
                    #expect(ContinuousClock.now - begun < Self.promised)
                    #expect(outcome.end == .exited(Int32(code)), "\(outcome)")
                    #expect(code != 74 || outcome.message.contains("Nobody read"), "\(outcome)")
                }
            }

            @Test(arguments: [false, true])
            func `a command that is told to end does so, also when it is cut off`(
                isCutOff: Bool
            ) async throws {
                try await withSite { site in
                    let sequencer = try await site.sequencer()
                    _ = try await site.worker("alpha", of: sequencer, stores: ["counter"])
                    func start(_ words: String...) throws -> Child {
                        try site.start(words + ["--json", "--connect", sequencer.address])
                    }
                    let followers = [
                        try start("log", "--follow"), try start("observe", "counter", "--follow"),
                        try start("status", "--watch"),
                    ]
                    let bench = try start("bench", "--single", "1000000")
                    let top = try Terminal(["top", "--connect", sequencer.address])
                    // Each of them is in the middle of its work.
                    for child in followers { _ = try await child.output.line(0) }
                    _ = try await followers[0].output.first { $0.contains("conflux-bench") }
                    try top.wait(for: "conflux-bench")
                    if isCutOff { sequencer.child.signal(SIGSTOP) }
                    let begun = ContinuousClock.now
                    for child in followers + [bench] { child.signal(SIGTERM) }
                    top.signal(SIGTERM)
                    for child in followers {
                        #expect(try await child.end() == .exited(0), "\(child.report)")
                    }
                    #expect(try await bench.end() == .exited(143), "\(bench.report)")
                    #expect(try top.end().code == 0)
                    #expect(ContinuousClock.now - begun < Self.promised)
                }
            }

            @Test func `a copy that is told to end leaves nothing that looks complete`()
                async throws
            {
                try await withSite { site in
                    let sequencer = try await site.sequencer(data: "log")
                    let filled = try await site.run(
                        "bench", "--single", "0", "--stream", "30", "--payload", "64KiB",
                        "--connect", sequencer.address)
                    #expect(filled.end == .exited(0), "\(filled)")
                    sequencer.child.signal(SIGTERM)
                    #expect(try await sequencer.child.end() == .exited(0))
                    let log = site.path("log")
                    try await expectNothing(site, after: { ["backup", $0, "--data", log] })
                    try await expectNothing(site, after: { ["restore", log, "--data", $0] })
                    try await expectNothing(
                        site, after: { ["migrate", "--from", log, "--to", $0] })
                }
            }

            /// Ends a command as soon as it has begun a copy, and expects no log there until it is run again.
            ///
            /// - Parameters:
            ///   - site: The place.
            ///   - words: The command that makes the copy in a folder.
            /// - Throws: What a step throws.
            private func expectNothing(
                _ site: Site, after words: (_ folder: String) -> [String]
            ) async throws {
                for attempt in 1...10 {
                    let folder = site.path("\(words("")[0])-\(attempt)")
                    let child = try site.start(words(folder))
                    let deadline = ContinuousClock.now + .seconds(60)
                    while !FileManager.default.fileExists(atPath: folder) {
                        try #require(ContinuousClock.now < deadline)
                        await Task.yield()
                    }
                    child.signal(SIGTERM)
                    let begun = ContinuousClock.now
                    let outcome = try await Tool.outcome(of: child)
                    #expect(ContinuousClock.now - begun < Self.promised)
                    // It may have been faster than the signal.
                    if outcome.end == .exited(0) { continue }
                    #expect(outcome.end == .exited(143), "\(outcome)")
                    #expect(outcome.message.contains("interrupted"), "\(outcome)")
                    let look = try await site.run("log", "--verify", folder)
                    #expect(look.end == .exited(66), "\(look)")
                    let again = try await Tool.outcome(of: try site.start(words(folder)))
                    #expect(again.end == .exited(0), "\(again)")
                    return
                }
                Issue.record("\(words("")[0]) was always faster than the signal")
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
