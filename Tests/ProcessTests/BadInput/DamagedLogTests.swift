import Conflux
import ConfluxLog
import ConfluxVocabulary
import Foundation
import Testing

extension ProcessTests {
    /// A sequencer whose log is damaged: what it reports, and what it still serves.
    struct DamagedLogTests {
        private static let keep = ["--keep-bytes", "1MiB"]
        /// Nothing is discarded.
        private static let keepAll = ["--keep-bytes", "4MiB"]

        @Test func `a damaged commit or checkpoint is reported, and all else is served`()
            async throws
        {
            try await withSite { site in
                let last = try await fill(site)
                try await expectCommitTold(site, upTo: last)
                try await expectCheckpointTold(site)
            }
        }

        @Test func `a damaged snapshot is reported, and all else is served`() async throws {
            try await withSite { site in
                try await fillUntilSaved(site)
                try await expectSnapshotTold(site)
                try await expectListTold(site)
            }
        }

        @Test func `a log that can't be served is named, and nothing is made of it`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer(data: "log")
                let worker = try await site.worker("alpha", of: sequencer)
                for _ in 1...3 {
                    _ = try await site.dispatch("increment", to: "counter", at: sequencer.address)
                }
                let backup = try await site.run(
                    "backup", site.path("copy"), "--data", site.path("log"))
                #expect(backup.end == .exited(0), "\(backup.message)")
                for child in [worker.child, sequencer.child] {
                    child.signal(SIGTERM)
                    _ = try await child.end()
                }
                let whole = try Data(contentsOf: site.database("copy"))

                try whole.prefix(whole.count / 2).write(to: site.database("copy"))
                try await expectRefused(site, "copy", saying: "damaged", site.database("copy").path)

                try Data("a letter to a friend, and longer than a header of a database is".utf8)
                    .write(to: site.database("copy"))
                try await expectRefused(
                    site, "copy", saying: "not a database", site.database("copy").path)

                // The application id, by which SQLite tells whose file it is.
                var other = whole
                other[68] ^= 1
                try other.write(to: site.database("copy"))
                try await expectRefused(
                    site, "copy", saying: "another program", site.database("copy").path)

                // The log's main file is missing: the files beside it don't become a new log.
                try FileManager.default.removeItem(at: site.database("log"))
                try await expectRefused(site, "log", saying: "backup", site.database("log").path)
                #expect(!FileManager.default.fileExists(atPath: site.database("log").path))

                // Not even root can make a folder below a file.
                _ = try site.write("x", to: "file")
                try await expectRefused(site, "file/below", saying: "cannot be used", "file")
            }
        }

        @Test func `a log with a changed identity, epoch or floor is not served`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer(data: "log")
                let log = try #require(sequencer.ready[key: "log"]?.string)
                let backup = try await site.run(
                    "backup", site.path("copy"), "--data", site.path("log"))
                #expect(backup.end == .exited(0), "\(backup.message)")
                var bytes = try Data(contentsOf: site.database("copy"))
                let place = try #require(bytes.range(of: Data(log.utf8)))
                // Changes one digit into another.
                bytes[place.lowerBound] ^= 1
                try bytes.write(to: site.database("copy"))
                try await expectRefused(site, "copy", saying: "identity", site.path("copy"))
                let copied = try await site.run("log", "--verify", site.path("copy"))
                #expect(copied.end != .exited(0))
                #expect(copied.message.contains("identity"), "\(copied.message)")
            }
        }

        // MARK: A log that has everything

        /// Makes a backup, `copy`, with two checkpoints, of a counter and of a document that was created after
        /// all of the counter's entries.
        ///
        /// - Returns: The number of the counter's last entry.
        private func fill(_ site: Site) async throws -> UInt64 {
            let sequencer = try await site.sequencer(data: "log", Self.keepAll[0], Self.keepAll[1])
            let counter = try await site.worker("alpha", of: sequencer, stores: ["counter"])
            var last: UInt64 = 0
            for amount in 1...20 {
                last = try await site.dispatch(
                    #"{"add":{"amount":\#(1000 + amount)}}"#, to: "counter", at: sequencer.address)
            }
            let document = try await site.worker("beta", of: sequencer, stores: ["document"])
            for _ in 0..<3 { try await load(site, sequencer) }
            try await site.backUp(ending: [counter.child, document.child, sequencer.child])
            return last
        }

        /// Makes a backup, `copy`, of a counter and of a document that has a snapshot, and whose first entries
        /// were discarded.
        private func fillUntilSaved(_ site: Site) async throws {
            let sequencer = try await site.sequencer(
                data: "log", Self.keep[0], Self.keep[1], "--keep-entries", "20")
            let worker = try await site.worker("alpha", of: sequencer)
            _ = try await site.dispatch(
                #"{"add":{"amount":20210}}"#, to: "counter", at: sequencer.address)
            let deadline = ContinuousClock.now + .seconds(60)
            while true {
                let document = try await site.status(of: "document/shared", at: sequencer.address)
                let life = try #require(document[key: "life"]?.number)
                let file = try SQLiteLogFile(directory: site.path("log"))
                let floor = file.floor.rawValue
                file.close()
                if document[key: "snapshot"]?.number ?? 0 > life, floor > life + 1 { break }
                try #require(ContinuousClock.now < deadline)
                try await load(site, sequencer)
            }
            try await site.backUp(ending: [worker.child, sequencer.child])
        }

        private func load(_ site: Site, _ sequencer: RunningSequencer) async throws {
            let padding = String(repeating: "x", count: 16 << 10)
            let lines = (0..<32).map { index in
                #"{"set":{"at":"/\#(index % 4)","value":"\#(index) \#(padding)"}}"#
            }
            try await site.dispatch(
                lines: lines, to: "document", at: sequencer.address, "--timeout", "60s")
        }

        private func expectCommitTold(_ site: Site, upTo last: UInt64) async throws {
            try site.flip("1013".utf8, to: "commit")
            let sequencer = try await site.sequencer(
                data: "commit", Self.keepAll[0], Self.keepAll[1])
            try await expectServed("document", site, sequencer)
            let refused = try site.start([
                "worker", "--json", "--connect", sequencer.address, "--name", "late", "--store",
                "counter",
            ])
            let damaged = try await site.event("damaged", of: sequencer.child)
            let from = try #require(damaged[key: "from"]?.number)
            let through = try #require(damaged[key: "through"]?.number)
            #expect(from > 1 && through >= from && through <= last)
            #expect(damaged[key: "message"]?.string?.contains("\(from)") == true)
            let outcome = try await Tool.outcome(of: refused)
            #expect(outcome.end != .exited(0))
            #expect(outcome.message.contains("\(from)"), "\(outcome.message)")
            #expect(!outcome.output.contains { $0.contains(#""event":"ready""#) })
            try await expectShownAround(from...through, site, sequencer)
            try await expectServed("document", site, sequencer)
            try await end(sequencer)
        }

        private func expectCheckpointTold(_ site: Site) async throws {
            let file = try SQLiteLogFile(directory: site.path("copy"))
            let newest = try #require(try file.checkpoint(through: file.last))
            file.close()
            try site.flip(newest.bytes.prefix(200), to: "checkpoint")
            let sequencer = try await site.sequencer(
                data: "checkpoint", Self.keepAll[0], Self.keepAll[1])
            let told = try await site.event("checkpointSetAside", of: sequencer.child)
            #expect(told[key: "sequence"]?.number == newest.sequence.rawValue)
            try await expectServed("document", site, sequencer)
            try await expectServed("counter", site, sequencer)
            try await end(sequencer)
        }

        private func expectSnapshotTold(_ site: Site) async throws {
            let file = try SQLiteLogFile(directory: site.path("copy"))
            let newest = try #require(
                try file.snapshots().last {
                    $0.kind == .confirmed && $0.store.description == "document/shared"
                })
            let bytes = try #require(
                try file.readSnapshot(of: newest.key, from: 0, limitBytes: 300))
            file.close()
            try site.flip(bytes, to: "snapshot")
            let sequencer = try await site.sequencer(data: "snapshot", Self.keep[0], Self.keep[1])
            let refused = try site.start([
                "worker", "--json", "--connect", sequencer.address, "--name", "late", "--store",
                newest.store.description,
            ])
            let told = try await site.event("snapshotFailed", of: sequencer.child)
            #expect(told[key: "store"]?.string == newest.store.description)
            #expect(told[key: "sequence"]?.number == newest.sequence.rawValue)
            #expect(
                told[key: "reason"]?.string?.contains("not those that were written") == true)
            try await expectServed("counter", site, sequencer)
            // No node is there that could make another snapshot, and the worker is not given anything else.
            refused.signal(SIGTERM)
            let outcome = try await Tool.outcome(of: refused)
            #expect(!outcome.output.contains { $0.contains(#""event":"ready""#) })
            try await end(sequencer)
        }

        /// A store is not started from anything else if its snapshot may be missing from the list.
        private func expectListTold(_ site: Site) async throws {
            let file = try SQLiteLogFile(directory: site.path("copy"))
            let listed = try file.snapshots().filter { $0.store.description == "document/shared" }
            file.close()
            let store = try #require(listed.first).store.description
            var source = "copy"
            for snapshot in listed {
                let text = "\(snapshot.store) \(snapshot.life) \(snapshot.sequence) "
                try site.flip(text.utf8, of: source, to: "list")
                source = "list"
            }
            let sequencer = try await site.sequencer(data: "list", Self.keep[0], Self.keep[1])
            let list = try await site.event("snapshotsUnlisted", of: sequencer.child)
            #expect(list[key: "message"]?.string?.contains("list of snapshots") == true)
            let told = try await site.event("snapshotFailed", of: sequencer.child)
            #expect(told[key: "store"]?.string == store)
            let refused = try await site.run(
                "worker", "--json", "--connect", sequencer.address, "--name", "late", "--store",
                store)
            #expect(refused.end != .exited(0))
            #expect(refused.message.contains("list of snapshots"), "\(refused.message)")
            #expect(!refused.output.contains { $0.contains(#""event":"ready""#) })
            try await expectServed("counter", site, sequencer)
            try await end(sequencer)
        }

        /// A reader of the log is told what is missing, and gets everything else.
        private func expectShownAround(
            _ damage: ClosedRange<UInt64>, _ site: Site, _ sequencer: RunningSequencer
        ) async throws {
            let whole = try await site.run("log", "--json", "--connect", sequencer.address)
            #expect(whole.end == .exited(74), "\(whole.message)")
            let place = "entries \(damage.lowerBound) to \(damage.upperBound) "
            #expect(whole.errors.count == 1 && whole.message.contains(place), "\(whole.message)")
            var order = LogOrder(without: damage)
            for line in whole.output { try order.take(LogLine(line)) }
            #expect(order.last > damage.upperBound)

            let before = try await site.run(
                "log", "--to", "\(damage.lowerBound - 1)", "--connect", sequencer.address)
            let behind = try await site.run(
                "log", "--from", "\(damage.upperBound + 1)", "--connect", sequencer.address)
            for outcome in [before, behind] {
                #expect(outcome.end == .exited(0) && outcome.errors.isEmpty, "\(outcome.message)")
                #expect(!outcome.output.isEmpty)
            }
        }

        // MARK: Expectations

        /// Expects that a worker gets a store with its former state, and can still commit to it.
        private func expectServed(
            _ store: String, _ site: Site, _ sequencer: RunningSequencer
        ) async throws {
            let name = "served-\(UUID().uuidString.prefix(8).lowercased())"
            let worker = try await site.worker(name, of: sequencer, stores: [store])
            let action =
                store == "counter" ? "increment" : #"{"increment":{"at":"/n","by":1}}"#
            let sequence = try await site.dispatch(
                action, to: store, at: sequencer.address, "--wait", "applied")
            let seen = try await site.sightings(
                of: store, at: sequencer.address, in: [name], from: sequence)
            let state = try #require(seen.first?.state)
            if store == "counter" {
                #expect(state == #"{"count":20211}"#)
            } else {
                #expect(state.contains("31 xxx") && state.contains(#""n":"#))
            }
            worker.child.signal(SIGTERM)
            _ = try await worker.child.end()
        }

        private func expectRefused(
            _ site: Site, _ name: String, saying words: String, _ place: String
        ) async throws {
            let outcome = try await site.run(
                "sequencer", "--data", site.path(name), "--bind", "tcp://127.0.0.1:0", "--json")
            #expect(outcome.end == .exited(73), "\(outcome.message)")
            #expect(outcome.message.contains(words), "\(outcome.message)")
            #expect(outcome.message.contains(place), "\(outcome.message)")
            #expect(outcome.output.isEmpty)
        }

        private func end(_ sequencer: RunningSequencer) async throws {
            sequencer.child.signal(SIGTERM)
            #expect(try await sequencer.child.end() == .exited(0))
        }
    }
}
