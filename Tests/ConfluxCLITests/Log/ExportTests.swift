import ConfluxArguments
import ConfluxBuiltins
@testable import ConfluxNode
@testable import ConfluxProtocol
import ConfluxSequencer
import ConfluxTesting
@testable import ConfluxWorker
import Foundation
import Testing

@testable import ConfluxCLI

@Suite(.timeLimit(.minutes(5))) struct `What conflux log export writes` {
    /// A folder that is removed afterwards.
    private func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = NSTemporaryDirectory() + "conflux-export-\(Identifier.random())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(folder))
        } catch {
            result = .failure(error)
        }
        try FileManager.default.removeItem(atPath: folder)
        try result.get()
    }

    private func names(in folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder)
    }

    @Test func `the built-in states agree with what they did`() async throws {
        try await withFolder { folder in
            try await `A tour of the commands`.withNodes("alpha") { connect in
                for words in [
                    ["counter/*", "increment"], ["counter", #"{"add":{"amount":5}}"#],
                    ["document/prefs", #"{"set":{"at":"/a","value":1}}"#],
                    ["counter", #"{"add":{"amount":9223372036854775807}}"#],
                ] {
                    _ = try await Run.tool(["dispatch"] + words + ["--wait", "applied"] + connect)
                }
                let (file, recording) = (folder + "/history", folder + "/recording")
                let run = try await Run.tool(["log", "export", file] + connect)
                try #require(run.exitCode == .success)
                #expect(run.lines.count == 1 && run.lines[0].contains(#""actions":4"#))
                let states: [ReplayedState] = [
                    .replicated(CounterState.self), .model(Document.self),
                ]
                let recorded = try record(file, to: recording, with: states[0], states[1])
                #expect(recorded.difference == nil && recorded.actions == 4)
                #expect(recorded.refusals == 1)
                let report = try replay(recording, with: states[0], states[1])
                #expect(report.difference == nil && report.states == recorded.states)
                #expect(try names(in: folder).sorted() == ["history", "recording"])
            }
        }
    }

    @Test func `what a timer did is replayed, and the timer itself is no action`() async throws {
        try await withFolder { folder in
            try await `A tour of the commands`.withNodes("alpha") { connect in
                for words in [
                    ["increment", "--after", "0s"],
                    [#"{"add":{"amount":9223372036854775807}}"#, "--at", "1970-01-01T00:00:00Z"],
                    ["increment", "--after", "1d", "--key", "k"],
                ] {
                    let run = try await Run.tool(["dispatch", "counter"] + words + connect)
                    #expect(run.exitCode == .success)
                }
                _ = try await Run.tool(["timers", "counter", "--cancel", "k"] + connect)
                while try await Run.tool(["log"] + connect).lines.filter({
                    $0.contains(#","timer":"#)
                }).count < 2 {}
                for options in [[], ["--target", "counter"]] {
                    let file = folder + "/history\(options.count)"
                    let run = try await Run.tool(["log", "export", file] + options + connect)
                    #expect(run.exitCode == .success && run.lines[0].contains(#""actions":2"#))
                    let recorded = try record(
                        file, to: file + "-recording", with: .replicated(CounterState.self),
                        .model(Document.self))
                    #expect(recorded.difference == nil)
                    #expect(recorded.actions == 2, "\(options)")
                    #expect(recorded.refusals == 1)
                }
            }
        }
    }

    @Test func `one state can be left out, and a range ends where it should`() async throws {
        try await withFolder { folder in
            try await `A tour of the commands`.withNodes("alpha") { connect in
                _ = try await Run.tool(
                    ["dispatch", "document/prefs", #"{"set":{"at":"/a","value":1}}"#] + connect)
                _ = try await Run.tool(["dispatch", "counter", "increment"] + connect)
                let last = try await Run.tool(["log"] + connect).lines.count
                _ = try await Run.tool(["dispatch", "counter", "increment"] + connect)
                let file = folder + "/history"
                let run = try await Run.tool(
                    ["log", "export", file, "--to", "\(last)", "--target", "counter"] + connect)
                #expect(run.exitCode == .success && run.lines[0].contains(#""actions":1"#))
                #expect(run.lines[0].contains(#""through":\#(last)"#))
                let recorded = try record(
                    file, to: folder + "/recording", with: .replicated(CounterState.self))
                #expect(recorded.difference == nil && recorded.actions == 1)
            }
        }
    }

    @Test func `it waits for entries that are still to come`() async throws {
        try await withFolder { folder in
            try await `A tour of the commands`.withNodes("alpha") { connect in
                let last = try await Run.tool(["log"] + connect).lines.count
                let file = folder + "/history"
                async let export = Run.tool(
                    ["log", "export", file, "--to", "\(last + 2)"] + connect)
                for _ in 0..<2 {
                    _ = try await Run.tool(["dispatch", "counter", "increment"] + connect)
                }
                let run = try await export
                #expect(run.exitCode == .success)
                #expect(run.lines[0].contains(#""through":\#(last + 2)"#))
            }
        }
    }

    @Test func `an export that is interrupted leaves no file`() async throws {
        try await withFolder { folder in
            try await `A tour of the commands`.withNodes("alpha") { connect in
                let interruption = Interruption()
                async let export = Run.tool(
                    ["log", "export", folder + "/history", "--to", "100000"] + connect,
                    interruption: interruption)
                // Its file is begun.
                while try names(in: folder).isEmpty { await Task.yield() }
                interruption.fire(.interrupted)
                #expect(try await export.exitCode == .interrupted)
                #expect(try names(in: folder) == [])
            }
        }
    }

    @Test func `a range that the log does not have is refused, and no file is left`() async throws {
        try await withFolder { folder in
            try await `A tour of the commands`.withNodes("alpha") { connect in
                for words in [["--from", "900"], ["--from", "900", "--to", "800"]] {
                    let words = ["log", "export", folder + "/history"] + words + connect
                    if words.contains("800") {
                        #expect(throws: UsageError.self) {
                            guard case .run(let invocation) = try Tool.program.parse(words) else {
                                return
                            }
                            try ExportCommand.validate(invocation)
                        }
                    } else {
                        #expect(try await Run.tool(words).exitCode == .notFound)
                    }
                }
                #expect(try names(in: folder) == [])
                let run = try await Run.tool(["log", "export", folder + "/no/history"] + connect)
                #expect(run.exitCode == .logFailed)
            }
        }
    }

    @Test(arguments: ["counter/none", "counted", "counted/*"])
    func `a target without stores in the range is refused, and no file is left`(
        target: String
    ) async throws {
        try await withFolder { folder in
            try await `A tour of the commands`.withNodes("alpha") { connect in
                // An action for every store of the state concerns a store that does not exist, too.
                _ = try await Run.tool(["dispatch", "counter/*", "increment"] + connect)
                let run = try await Run.tool(
                    ["log", "export", folder + "/history", "--target", target] + connect)
                #expect(run.exitCode == .notFound && run.lines.isEmpty)
                #expect(try names(in: folder) == [])
            }
        }
    }

    @Test func `a store that was dropped, or is still to come, has its history`() async throws {
        try await withFolder { folder in
            try await `A tour of the commands`.withNodes("alpha") { connect in
                let store = "counter/late"
                let last = try await Run.tool(["log"] + connect).lines.count
                async let coming = Run.tool(
                    ["log", "export", folder + "/coming", "--to", "\(last + 5)", "--target", store]
                        + connect)
                let node = try await Node.connect(to: try #require(connect.last), scope: Scope())
                let counter = try await node.store(CounterState.self, named: "late")
                for _ in 0..<5 {
                    _ = try await Run.tool(["dispatch", store, "increment"] + connect)
                }
                #expect(try await coming.exitCode == .success)
                _ = try await Run.tool(["drop", store, "--yes"] + connect)
                let run = try await Run.tool(
                    ["log", "export", folder + "/dropped", "--target", store] + connect)
                #expect(run.exitCode == .success && run.lines[0].contains(#""actions":5"#))
                await node.close()
                withExtendedLifetime(counter) {}
            }
        }
    }

    /// A log that holds the entries from 100 to 200.
    private func range(
        from: UInt64?, _ stores: (life: UInt64, base: UInt64)...
    ) throws -> HistoryRange {
        let status = SequencerStatus(
            log: .random(), epoch: Epoch(1), last: SequenceNumber(200), floor: SequenceNumber(100),
            checkpoint: .zero, sessions: [], stores: [])
        return try HistoryRange(
            from: from.map { SequenceNumber($0) }, through: SequenceNumber(200), of: status,
            stores.enumerated().map { index, store in
                ReadStart(
                    store: try #require(StoreName("counter/\(index)")),
                    life: SequenceNumber(store.life),
                    floor: SequenceNumber(100),
                    offer: .saved(
                        SnapshotReference(
                            sequence: SequenceNumber(store.base), schemaVersion: 1,
                            digest: Digest(of: []), byteCount: 9)),
                    aside: nil, skipped: [], version: VersionInForce(1), earlier: nil)
            })
    }

    @Test func `a range begins where each store has a state`() throws {
        // The newest snapshot decides, and a store whose first entry the log holds needs none.
        #expect(
            try range(from: nil, (life: 5, base: 120), (life: 7, base: 150)).from.rawValue == 151)
        #expect(try range(from: nil, (life: 130, base: 180)).from.rawValue == 100)
        // What was asked for, and the entries from the older snapshot on.
        let asked = try range(from: 160, (life: 5, base: 120), (life: 7, base: 150))
        #expect(asked.from.rawValue == 160 && asked.first.rawValue == 121)
        #expect(asked.starts.count == 2)
    }

    @Test func `a range that begins before a store's only snapshot is refused`() throws {
        let failure = #expect(throws: CommandFailure.self) {
            try range(from: 140, (life: 5, base: 120), (life: 7, base: 150))
        }
        #expect(failure?.code == "noSnapshot" && failure?.exitCode == .notFound)
        #expect(failure?.message.contains("--from 151 or later") == true, "\(failure as Any)")
        let discarded = #expect(throws: CommandFailure.self) { try range(from: 99) }
        #expect(discarded?.code == "discarded")
    }
}
