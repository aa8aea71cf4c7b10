#if os(Linux)
    import Conflux
    import Foundation
    import Testing

    extension ProcessTests {
        /// What the timer and the job run: a backup, and the removal of the oldest ones.
        struct BackupScriptTests {
            /// Runs the script with the program that was built.
            private func backUp(
                _ site: Site, _ log: String, keep count: String = "2"
            ) async throws -> Tool.Outcome {
                let programs = site.path("bin")
                if !Deployment.isFile(programs) {
                    try FileManager.default.createDirectory(
                        atPath: programs, withIntermediateDirectories: true)
                    try FileManager.default.createSymbolicLink(
                        atPath: "\(programs)/conflux", withDestinationPath: Tool.path)
                }
                return try await Deployment.run(
                    Deployment.path("deploy/backup/conflux-backup"), site.path(log),
                    site.path("backups"), count, variables: ["PATH": "\(programs):/usr/bin:/bin"])
            }

            private func backups(_ site: Site) throws -> [String] {
                try FileManager.default.contentsOfDirectory(atPath: site.path("backups")).sorted()
            }

            private func makeOlder(_ names: [String], _ site: Site) throws {
                for name in names {
                    try FileManager.default.createDirectory(
                        atPath: site.path("backups/\(name)"), withIntermediateDirectories: true)
                    _ = try site.write("", to: "backups/\(name)/log.sqlite")
                }
            }

            @Test
            func `a backup is whole, the newest ones stay, and the sequencer reports its time`()
                async throws
            {
                try await withSite { site in
                    let sequencer = try await site.sequencer(data: "log", "--http", "127.0.0.1:0")
                    _ = try await site.worker("alpha", of: sequencer)
                    _ = try await site.dispatch("increment", to: "counter", at: sequencer.address)
                    try makeOlder(
                        ["20250101T030000Z", "20250102T030000Z", "20250102T03Z", "mine"], site)
                    let metric = "conflux_sequencer_last_backup_time_seconds"
                    let before = try await Scrape.metrics(of: sequencer.ready) {
                        $0.contains("conflux_sequencer_log_file_bytes ")
                    }
                    #expect(Scrape.value(metric, in: before) == nil)

                    let start = Date.now.timeIntervalSince1970
                    let outcome = try await backUp(site, "log")
                    #expect(outcome.end == .exited(0), "\(outcome.message)")
                    let names = try backups(site)
                    let new = try #require(
                        names.first { $0.wholeMatch(of: /20\d{6}T\d{6}Z/) != nil && $0 > "2025013" }
                    )
                    #expect(
                        names == ["20250102T030000Z", "20250102T03Z", new, "lock", "mine"].sorted())
                    let whole = try await site.run("log", "--verify", site.path("backups/\(new)"))
                    #expect(whole.end == .exited(0), "\(whole.message)")
                    _ = try await Scrape.metrics(of: sequencer.ready) {
                        Scrape.value(metric, in: $0).map { $0 >= start - 2 } == true
                    }
                }
            }

            @Test func `a backup that fails removes nothing, and has no name of a backup`()
                async throws
            {
                try await withSite { site in
                    let older = ["20250101T030000Z", "20250102T030000Z", "20250103T030000Z"]
                    try makeOlder(older, site)
                    let failed = try await backUp(site, "nowhere")
                    #expect(failed.end == .exited(66), "\(failed.message)")
                    #expect(try backups(site).filter { $0.hasPrefix("20") } == older)
                    for count in ["0", "", "some", "-1"] {
                        let refused = try await backUp(site, "nowhere", keep: count)
                        #expect(refused.end == .exited(64), "\(count): \(refused.message)")
                    }
                }
            }

            @Test func `a damaged log is not taken for a backup`() async throws {
                try await withSite { site in
                    let sequencer = try await site.sequencer(data: "log")
                    _ = try await site.worker("alpha", of: sequencer)
                    for amount in 1...20 {
                        _ = try await site.dispatch(
                            #"{"add":{"amount":\#(1000 + amount)}}"#, to: "counter",
                            at: sequencer.address)
                    }
                    sequencer.child.signal(SIGTERM)
                    #expect(try await sequencer.child.end() == .exited(0))
                    let copied = try await site.run(
                        "backup", site.path("copy"), "--data", site.path("log"))
                    #expect(copied.end == .exited(0), "\(copied.message)")
                    try site.flip("1013".utf8, to: "changed")
                    let failed = try await backUp(site, "changed")
                    #expect(failed.end == .exited(74), "\(failed.message)")
                    #expect(try backups(site).filter { $0.hasPrefix("20") }.isEmpty)
                    #expect(!Deployment.isFile(site.path("changed/backed-up")))
                    // The next attempt removes what this one left.
                    let next = try await backUp(site, "copy")
                    #expect(next.end == .exited(0), "\(next.message)")
                    #expect(try backups(site).filter { $0 != "lock" }.count == 1)
                }
            }

            @Test(.enabled(if: Deployment.has("flock"), "there is no flock"))
            func `one backup runs at a time`() async throws {
                try await withSite { site in
                    try makeOlder(["20250101T030000Z"], site)
                    let holder = try Tool.start(
                        [site.path("backups/lock"), "sh", "-c", "echo held; exec sleep 60"],
                        program: try #require(Deployment.program("flock")))
                    _ = try await holder.output.first { $0 == "held" }
                    let second = try await backUp(site, "nowhere")
                    #expect(second.end == .exited(75), "\(second.message)")
                    try await holder.destroy()
                }
            }
        }
    }
#endif
