import Conflux
import EtcdCluster
import Foundation
import Testing

extension ProcessTests {
    /// `conflux migrate`.
    @Suite(.serialized, .enabled(if: EtcdCluster.isInstalled)) struct MigrationTests {
        private func address() throws -> String {
            try EtcdCluster.shared.get().address("conflux/\(UUID().uuidString)")
        }

        @Test func `a log moves to etcd and back under load, and nothing is lost or doubled`()
            async throws
        {
            try await withSeed { seed in
                try await withSite { site in
                    let place = try address()
                    let first = try await site.sequencer(data: "log")
                    let workers = [
                        try await site.worker("w1", of: first),
                        try await site.worker("w2", of: first),
                    ]
                    let streams = try await startStreams(
                        site, first.address, lineCount: 600, seed: seed)
                    for stream in streams { _ = try await stream.child.output.line(50) }
                    first.child.signal(SIGKILL)
                    #expect(try await first.child.end() == .killed(SIGKILL))
                    let moved = try await site.run(
                        "migrate", "--from", site.path("log"), "--to", place, "--json")
                    #expect(moved.end == .exited(0), "\(moved.message)")
                    let line = try object(try #require(moved.output.first))
                    #expect(line[key: "log"] == first.ready[key: "log"])

                    let second = try await site.sequencer(log: place, at: first)
                    #expect(second.ready[key: "log"] == first.ready[key: "log"])
                    for stream in streams { _ = try await stream.child.output.line(300) }
                    second.child.signal(SIGKILL)
                    #expect(try await second.child.end() == .killed(SIGKILL))
                    let folder = site.path("back")
                    let back = try await site.run("migrate", "--from", place, "--to", folder)
                    #expect(back.end == .exited(0), "\(back.message)")
                    #expect(back.output.first?.contains("--data \(folder)") == true)

                    let third = try await site.sequencer(data: "back", at: first)
                    for stream in streams { stream.finish() }
                    let expectations = try await outcomes(of: streams)
                    try await site.expectOneHistory(
                        of: expectations, at: third.address, in: ["w1", "w2"])
                    let whole = try await site.run("log", "--verify", folder)
                    #expect(whole.end == .exited(0), "\(whole.message)")
                    for worker in workers {
                        let events = worker.child.output.soFar.compactMap { try? object($0) }
                        #expect(!events.contains { $0[key: "event"] == "historyLost" })
                    }
                }
            }
        }

        @Test func `nothing is moved from a served log, from no log, or over another one`()
            async throws
        {
            try await withSite { site in
                let (place, empty) = (try address(), try address())
                let onDisk = try await site.sequencer(data: "log")
                let onEtcd = try await site.sequencer(log: place)
                for (from, to, code, words) in [
                    (site.path("log"), empty, 73, "end that one"),
                    (site.path("none"), empty, 66, "There is no log in"),
                    (empty, site.path("copy"), 66, "There is no log at"),
                    (site.path("log"), site.path("log"), 64, "the same place"),
                    ("etcd://nowhere", site.path("copy"), 64, "etcd://HOST:PORT"),
                ] {
                    let outcome = try await site.run("migrate", "--from", from, "--to", to)
                    #expect(outcome.end == .exited(Int32(code)), "\(outcome.message)")
                    #expect(outcome.message.contains(words), "\(outcome.message)")
                }
                onDisk.child.signal(SIGTERM)
                #expect(try await onDisk.child.end() == .exited(0))
                let over = try await site.run("migrate", "--from", site.path("log"), "--to", place)
                #expect(over.end == .exited(73), "\(over.message)")
                onEtcd.child.signal(SIGTERM)
                #expect(try await onEtcd.child.end() == .exited(0))
            }
        }
    }
}
