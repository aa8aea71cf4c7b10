#if os(Linux)
    import Conflux
    import Foundation
    import Testing

    /// What the journal of systemd gets of a service's lines.
    struct JournalTests {
        @Test(arguments: [false, true])
        func `a line has its priority only where the journal reads it`(isJSON: Bool) async throws {
            try await withSite { site in
                let path = try site.write("", to: "journal")
                var status = stat()
                try #require(stat(path, &status) == 0)
                let stream = "\(status.st_dev):\(status.st_ino)"
                for (variable, isJournal) in [(stream, true), ("\(status.st_dev):0", false)] {
                    let socket = try ManagerSocket(site.path("notify-\(isJournal)"))
                    let child = try site.start(
                        ["sequencer", "--memory", "--bind", "tcp://127.0.0.1:0"]
                            + (isJSON ? ["--json"] : []),
                        variables: ["JOURNAL_STREAM": variable, "NOTIFY_SOCKET": socket.name],
                        output: .file(path))
                    #expect(await socket.next() == "READY=1")
                    child.signal(SIGTERM)
                    #expect(try await child.end() == .exited(0))
                    let lines = try String(contentsOfFile: path, encoding: .utf8)
                        .split(separator: "\n")
                    #expect(lines.count == 2, "\(lines)")
                    for line in lines {
                        #expect(line.hasPrefix("<6>") == isJournal, "\(line)")
                        let text = String(isJournal ? line.dropFirst(3) : line)
                        if isJSON {
                            #expect(try object(text)[key: "time"] != nil)
                        } else {
                            let start = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info {4}\w+/
                            #expect((text.prefixMatch(of: start) == nil) == isJournal, "\(text)")
                        }
                    }
                }
            }
        }

        @Test func `why a service ends is an error in the journal`() async throws {
            try await withSite { site in
                let path = try site.write("", to: "journal")
                var status = stat()
                try #require(stat(path, &status) == 0)
                // A shell gives both outputs one stream, as systemd does.
                let child = try Tool.start(
                    [
                        "-c", #"exec "$0" sequencer --data "$1/log" >>"$1" 2>&1"#, Tool.path, path,
                    ],
                    program: "/bin/sh",
                    variables: ["JOURNAL_STREAM": "\(status.st_dev):\(status.st_ino)"])
                #expect(try await child.end() == .exited(73))
                let text = try String(contentsOfFile: path, encoding: .utf8)
                #expect(text.hasPrefix("<3>conflux: "), "\(text)")
            }
        }

        /// Connects standard output and error to the journal, as systemd does for a unit, and becomes the program.
        private static let unit = """
            import os, socket, sys
            stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            stream.connect("/run/systemd/journal/stdout")
            stream.sendall(f"conflux\\n{sys.argv[1]}\\n6\\n1\\n0\\n0\\n0\\n".encode())
            facts = os.fstat(stream.fileno())
            os.environ["JOURNAL_STREAM"] = f"{facts.st_dev}:{facts.st_ino}"
            for output in 1, 2:
                os.dup2(stream.fileno(), output)
            os.execv(sys.argv[2], sys.argv[2:])
            """

        private static let journal = "/lib/systemd/systemd-journald"
        private static let isPossible =
            geteuid() == 0 && Deployment.isFile(journal)
            && Deployment.has("journalctl", "nsenter", "unshare", "python3")

        /// A journal of the test's own, which hides the machine's.
        @Test(.enabled(if: isPossible, "needs root, systemd-journald, util-linux and Python"))
        func `the runbook's line finds the warnings of a sequencer`() async throws {
            let line = try #require(
                try Runbook.section("what-to-watch").commands
                    .first { $0.hasPrefix("journalctl ") })
            try await withSite { site in
                let manager = try ManagerSocket(site.path("notify-journal"))
                let setUp = """
                    set -e
                    mount -t tmpfs tmpfs /run
                    mkdir -p /run/systemd/journal /run/log/journal
                    exec \(Self.journal)
                    """
                let journal = try Tool.start(
                    ["-m", "--propagation", "private", "/bin/sh", "-c", setUp],
                    program: try #require(Deployment.program("unshare")),
                    variables: ["NOTIFY_SOCKET": manager.name])
                defer { journal.signal(SIGKILL) }
                while let message = await manager.next(), !message.contains("READY=1") {}

                let inside = [
                    try #require(Deployment.program("nsenter")), "-m", "-t", "\(journal.processID)",
                ]
                func shell(_ command: String) async throws -> Tool.Outcome {
                    try await Tool.outcome(
                        of: try Tool.start(
                            Array(inside.dropFirst()) + ["/bin/sh", "-c", command],
                            program: inside[0]))
                }
                let ready = try ManagerSocket(site.path("notify-sequencer"))
                let address = "ipc://\(site.path("socket"))"
                let python = try #require(Deployment.program("python3"))
                let sequencer = try site.start(
                    ["sequencer", "--memory", "--bind", address],
                    behind: inside + [python, "-c", Self.unit, "conflux-sequencer.service"],
                    variables: ["NOTIFY_SOCKET": ready.name])
                #expect(await ready.next() == "READY=1", "\(sequencer.report)")
                let worker = try site.start([
                    "worker", "--json", "--store", "counter", "--connect", address,
                ])
                _ = try await worker.output.first { $0.contains(#""event":"ready""#) }
                let frozen = try await site.run("freeze", "counter", "--connect", address)
                #expect(frozen.end == .exited(0), "\(frozen.message)")
                sequencer.signal(SIGTERM)
                #expect(try await sequencer.end() == .exited(0))

                #expect(try await shell("journalctl --sync").end == .exited(0))
                let all = try await shell("journalctl -u conflux-sequencer -o cat").output
                #expect(all.contains { $0.hasPrefix("ready at \(address)") }, "\(all)")
                #expect(all.last == "stopped")
                let warnings = try await shell(line)
                #expect(warnings.end == .exited(0), "\(warnings.message)")
                #expect(warnings.output.contains { $0.contains("frozen: ") }, "\(warnings.output)")
                #expect(!warnings.output.contains { $0.contains("ready at") })
                #expect(!warnings.output.contains { $0.contains("<4>") })
            }
        }
    }
#endif
