import ConfluxArguments
import ConfluxNode
import ConfluxWorker
import Foundation
import Testing

@testable import ConfluxCLI

@Suite(.timeLimit(.minutes(5))) struct `Which entries conflux log shows` {
    private static func sequences(_ run: Run) throws -> [UInt64] {
        try run.lines.map {
            try #require(try JSONValue(json: $0)["/sequence"]?.integer?.converted(to: UInt64.self))
        }
    }

    @Test func `the tail is the last entries, or all of them if there are fewer`() async throws {
        try await `A tour of the commands`.withNodes("alpha") { connect in
            for _ in 0..<3 {
                _ = try await Run.tool(["dispatch", "counter/*", "increment"] + connect)
            }
            let all = try Self.sequences(try await Run.tool(["log"] + connect))
            let tail = try Self.sequences(try await Run.tool(["log", "--tail", "2"] + connect))
            #expect(tail == Array(all.suffix(2)) && tail.count == 2)
            let more = try Self.sequences(try await Run.tool(["log", "--tail", "900"] + connect))
            #expect(more == all)
            let none = try await Run.tool(
                ["log", "--tail", "2", "--target", "document/*"] + connect)
            #expect(none.lines == [] && none.exitCode == .success)
        }
    }

    @Test func `only entries newer than a duration are shown`() async throws {
        try await `A tour of the commands`.withNodes("alpha") { connect in
            _ = try await Run.tool(["dispatch", "counter/*", "increment"] + connect)
            let all = try await Run.tool(["log"] + connect)
            #expect(try await Run.tool(["log", "--since", "1h"] + connect).lines == all.lines)
            let output = try TemporaryFile()
            let printer = EntryPrinter(
                StandardOutput(descriptor: output.descriptor), isJSON: true, target: nil,
                since: Timestamp(Date(timeIntervalSinceNow: 3_600)))
            let core = try NodeCore(
                address: try #require(connect.last), settings: NodeSettings(), role: .observer,
                scope: Scope(), tap: { printer.take($0) })
            try await core.connected(within: .seconds(5))
            printer.begin(
                from: SequenceNumber(1), through: SequenceNumber(UInt64(all.lines.count)),
                owners: [:])
            core.follow(from: SequenceNumber(1))
            #expect(await printer.reading.ended() == nil)
            core.leave(timeout: .zero)
            await core.ended()
            #expect(output.lines == [])
        }
    }

    @Test(arguments: [
        ["--tail", "0"], ["--since", "0s"], ["--tail", "1", "--from", "1"],
        ["--tail", "1", "--since", "1h"], ["--verify", "x", "--tail", "1"],
    ])
    func `ranges that make no sense are usage errors`(options: [String]) {
        #expect(throws: UsageError.self) { try Tool.program.parse(["log"] + options) }
    }
}
