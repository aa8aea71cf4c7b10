import ConfluxProtocol
import ConfluxVocabulary
import Foundation
import Testing

#if os(Linux)
    extension ProcessTests {
        /// A disk that runs full, and later has room again.
        struct FullDiskTests {
            @Test
            func `a full disk is reported, loses no receipt, and all continues when there is room`()
                async throws
            {
                try await withSite { site in
                    guard let disk = try await SmallDisk.mount(on: site, mebibytes: 26) else {
                        print("full disk: skipped, since this user may not mount")
                        return
                    }
                    do {
                        try await fill(disk, site)
                    } catch {
                        try await disk.unmount()
                        throw error
                    }
                    await site.end()
                    try await disk.unmount()
                }
            }

            private func fill(_ disk: SmallDisk, _ site: Site) async throws {
                // The disk is full before the log has reached its bound.
                let first = try await site.sequencer(
                    data: "disk/log", host: "127.0.0.3", "--log-limit", "1GiB")
                let names = ["w1", "w2"]
                for name in names {
                    _ = try await site.worker(name, of: first, stores: ["document"])
                }
                let load = try Load("steady", on: site, at: first.address, seed: 1)
                async let feeding: Void = load.run()
                try await load.progress(by: 50)

                // Until no more receipts arrive.
                let receipted = try await onThread {
                    let node = try RawNode(at: first.address)
                    do {
                        try node.load(200, payloadBytes: 1 << 20)
                    } catch {
                        print("full disk: \(error)")
                    }
                    return node.settled
                }
                #expect(receipted > 0 && receipted < 200)
                let sequencer = try await goOn(first, disk, site)
                try await load.progress(by: 50)
                load.finish()
                try await feeding
                #expect(try await load.child.end() == .exited(0), "\(load.child.report)")

                var counters: [UInt64] = []
                _ = try await site.audit(
                    [try await LoadAudit(load, isWhole: true)], at: sequencer.address, in: names
                ) { line in
                    if case .action(_, "load/*", _, let counter) = line.content {
                        counters.append(counter)
                    }
                }
                #expect(counters == Array(1...UInt64(max(1, counters.count))))
                #expect(counters.count >= Int(receipted), "a receipt was given for what is lost")
            }

            /// Makes room on the disk, and restarts the sequencer if it has ended.
            private func goOn(
                _ first: RunningSequencer, _ disk: SmallDisk, _ site: Site
            ) async throws -> RunningSequencer {
                // It reports the full disk, either before it ends or while it waits for room.
                let said = try await first.child.output.first { line in
                    try object(line)[key: "event"] == "logFailed" && line.contains("full")
                }.line
                print("full disk: the sequencer says \(said)")
                var end: Child.End?
                do {
                    end = try await first.child.end(within: .seconds(3))
                } catch {
                    print("full disk: it goes on by itself")
                }
                try await disk.resize(mebibytes: 200)
                guard let end else { return first }
                #expect(end == .exited(74))
                return try await site.sequencer(data: "disk/log", at: first)
            }
        }
    }
#endif
