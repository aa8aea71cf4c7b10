import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// A backup that is made while the system runs, and what happens when it is restored.
    struct BackupTests {
        @Test func `a backup under load is whole, and nodes notice when it is restored`()
            async throws
        {
            try await withSite { site in
                var sequencer = try await site.sequencer(data: "log")
                let worker = try await site.worker("alpha", of: sequencer)
                let lines = Array(repeating: #"{"increment":{}}"#, count: 20_000)
                let path = try site.write(lines.joined(separator: "\n") + "\n", to: "lines")
                let load = try site.start([
                    "dispatch", "counter/*", "--file", path, "--json", "--connect",
                    sequencer.address,
                ])
                _ = try await load.output.line(200)
                let backup = try await site.run(
                    "backup", site.path("copy"), "--data", site.path("log"), "--json")
                #expect(backup.end == .exited(0), "\(backup.message)")
                let copied = try object(try #require(backup.output.first))
                let last = try #require(copied[key: "last"]?.number)
                #expect(last > 200)
                #expect(try await load.end() == .exited(0))

                let log = try await site.run("log", "--verify", site.path("log"), "--json")
                #expect(log.end == .exited(0), "\(log.message)")
                let whole = try object(try #require(log.output.first))
                #expect(whole[key: "log"] == copied[key: "log"])
                #expect(try #require(whole[key: "last"]?.number) > last)
                let again = try await site.run(
                    "backup", site.path("copy"), "--data", site.path("log"))
                #expect(again.end == .exited(73), "\(again.message)")

                // The copy continues from where it was made. A node that has seen more reports that, and follows.
                sequencer.child.signal(SIGTERM)
                #expect(try await sequencer.child.end() == .exited(0))
                sequencer = try await site.sequencer(data: "copy", at: sequencer)
                _ = try await worker.child.output.first { line in
                    try object(line)[key: "event"] == "historyLost"
                }
                let sequence = try await site.dispatch(
                    "increment", to: "counter", at: sequencer.address, "--wait", "applied")
                #expect(sequence > last)
                let state = try await site.sightings(
                    of: "counter", at: sequencer.address, in: ["alpha"], from: sequence)
                #expect(state.allSatisfy { $0.state != #"{"count":20001}"# })
            }
        }

        @Test func `a log is restored from its backup, and nodes are told what is lost`()
            async throws
        {
            try await withSite { site in
                var sequencer = try await site.sequencer(data: "log")
                let worker = try await site.worker("alpha", of: sequencer)
                for _ in 1...3 {
                    _ = try await site.dispatch("increment", to: "counter", at: sequencer.address)
                }
                let backup = try await site.run(
                    "backup", site.path("copy"), "--data", site.path("log"), "--json")
                #expect(backup.end == .exited(0), "\(backup.message)")
                let lost = try await site.dispatch(
                    "increment", to: "counter", at: sequencer.address, "--wait", "applied")
                // A backup can be restored neither from a served log nor over one.
                let served = try await site.run(
                    "restore", site.path("log"), "--data", site.path("other"))
                #expect(served.end == .exited(73), "\(served.message)")
                let used = try await site.run(
                    "restore", site.path("copy"), "--data", site.path("log"))
                #expect(used.end == .exited(73), "\(used.message)")

                sequencer.child.signal(SIGKILL)
                _ = try await sequencer.child.end()
                let there = try await site.run(
                    "restore", site.path("copy"), "--data", site.path("log"))
                #expect(there.end == .exited(73), "\(there.message)")
                try FileManager.default.removeItem(atPath: site.path("log"))
                let foreign = "4:" + String(repeating: "0", count: 64)
                let other = try await site.run(
                    "restore", site.path("copy"), "--data", site.path("log"), "--expect", foreign)
                #expect(other.end == .exited(74) && other.output.isEmpty, "\(other.message)")
                #expect(other.message.contains("Nothing was restored."), "\(other.message)")
                let back = try await site.run(
                    "restore", site.path("copy"), "--data", site.path("log"), "--json")
                #expect(back.end == .exited(0), "\(back.message)")
                #expect(back.output == backup.output)
                #expect(back.errors.contains { $0.contains("nodes that have seen more") })

                sequencer = try await site.sequencer(data: "log", at: sequencer)
                _ = try await worker.child.output.first { line in
                    try object(line)[key: "event"] == "historyLost"
                }
                let sequence = try await site.dispatch(
                    "increment", to: "counter", at: sequencer.address, "--wait", "applied")
                let state = try await site.sightings(
                    of: "counter", at: sequencer.address, in: ["alpha"], from: sequence)
                #expect(state.allSatisfy { $0.state == #"{"count":4}"# }, "\(lost)")
            }
        }

        @Test func `a changed log is reported with its entry, and so is a folder without a log`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer(data: "log")
                _ = try await site.worker("alpha", of: sequencer)
                for amount in 1...20 {
                    _ = try await site.dispatch(
                        #"{"add":{"amount":\#(1000 + amount)}}"#, to: "counter",
                        at: sequencer.address)
                }
                let backup = try await site.run(
                    "backup", site.path("copy"), "--data", site.path("log"))
                #expect(backup.end == .exited(0), "\(backup.message)")
                try site.flip("1013".utf8, to: "changed")
                let changed = try await site.run("log", "--verify", site.path("changed"), "--json")
                #expect(changed.end == .exited(74), "\(changed.message)")
                let error = try object(try #require(changed.errors.last))[key: "error"]
                #expect(error?[key: "code"] == "damaged")
                let none = try await site.run("log", "--verify", site.path("nowhere"))
                #expect(none.end == .exited(66), "\(none.message)")
                let nothing = try await site.run(
                    "backup", site.path("other"), "--data", site.path("nowhere"))
                #expect(nothing.end == .exited(66), "\(nothing.message)")
                // No file was made for a log that doesn't exist.
                #expect(!FileManager.default.fileExists(atPath: site.path("other")))
            }
        }
    }
}
