import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// A dispatch that is killed and run again with its key (rule 11), and one that times out
    /// (rule 12).
    struct ResumeTests {
        /// Lines, some of which are not actions and some of which are empty.
        private static func lines(_ count: Int) -> [String] {
            (1...count).map { line in
                switch line % 97 {
                case 13: ""
                case 31: "{nonsense"
                default: #"{"set":{"at":"/line","value":\#(line)}}"#
                }
            }
        }

        private static func start(
            _ site: Site, _ path: String, _ address: String
        ) throws -> Child {
            try site.start([
                "dispatch", "document/*", "--file", path, "--resume", "nightly", "--json",
                "--connect", address, "--timeout", "20s",
            ])
        }

        /// Runs the command until it succeeds, as its help says.
        private func finish(
            _ site: Site, _ path: String, _ progress: inout ResumeProgress, at address: String
        ) async throws {
            var end = Child.End.exited(-1)
            for _ in 0..<3 where end != .exited(0) {
                let child = try Self.start(site, path, address)
                end = try await child.end()
                try progress.take(try await child.output.all(), isWhole: true)
            }
            #expect(end == .exited(0))
        }

        private func expectOnce(
            _ site: Site, _ progress: ResumeProgress, at address: String
        ) async throws {
            let log = try await site.run(
                "log", "--json", "--connect", address, "--target", "document/*")
            #expect(log.end == .exited(0))
            var found: [UInt64: UInt64] = [:]
            var order: [UInt64] = []
            for text in log.output {
                let entry = try object(text)
                guard entry[key: "kind"] == "action" else { continue }
                let line = try #require(
                    entry[key: "action"]?[key: "set"]?[key: "value"]?.number)
                let sequence = try #require(entry[key: "sequence"]?.number)
                #expect(found.updateValue(sequence, forKey: line) == nil, "line \(line) twice")
                order.append(line)
            }
            let expected = progress.lines.indices
                .filter { progress.lines[$0].hasPrefix(#"{"set"#) }.map { UInt64($0 + 1) }
            #expect(order == expected)
            for (line, sequence) in progress.ends {
                if let sequence { #expect(found[UInt64(line)] == sequence, "line \(line)") }
            }
        }

        @Test func `a run that is killed again and again dispatches each line once`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer(data: "log")
                _ = try await site.worker("w1", of: sequencer)
                let lines = Self.lines(6_000)
                let path = try site.write(lines.joined(separator: "\n") + "\n", to: "lines")
                var progress = ResumeProgress(lines)
                for round in 0..<4 {
                    let child = try Self.start(site, path, sequencer.address)
                    _ = try await child.output.line(progress.ends.count + 40 + round * 300)
                    child.signal(SIGKILL)
                    _ = try await child.end()
                    try progress.take(try await child.output.all(), isWhole: false)
                }
                try await finish(site, path, &progress, at: sequencer.address)
                #expect(progress.ends.count == lines.filter { !$0.isEmpty }.count)
                try await expectOnce(site, progress, at: sequencer.address)
            }
        }

        @Test func `the sequencer is killed too, and each line is dispatched once`() async throws {
            try await withSite { site in
                var sequencer = try await site.sequencer(data: "log")
                _ = try await site.worker("w1", of: sequencer)
                let lines = Self.lines(6_000)
                let path = try site.write(lines.joined(separator: "\n") + "\n", to: "lines")
                var progress = ResumeProgress(lines)
                for round in 0..<4 {
                    let child = try Self.start(site, path, sequencer.address)
                    _ = try await child.output.line(progress.ends.count + 40 + round * 200)
                    sequencer.child.signal(SIGKILL)
                    _ = try await sequencer.child.end()
                    // The process is killed before the sequencer has restarted, or while it resumes.
                    if round % 2 == 0 {
                        child.signal(SIGKILL)
                        _ = try await child.end()
                    }
                    sequencer = try await site.sequencer(data: "log", at: sequencer)
                    if round % 2 == 1 {
                        _ = try await child.output.line(child.output.soFar.count + 10)
                        child.signal(SIGKILL)
                        _ = try await child.end()
                    }
                    try progress.take(try await child.output.all(), isWhole: false)
                }
                try await finish(site, path, &progress, at: sequencer.address)
                try await expectOnce(site, progress, at: sequencer.address)
            }
        }

        /// What a sequencer that doesn't answer does after the tool withdraws an action.
        enum Return: CaseIterable {
            case never
            case goesOn
            case startsAgain
        }

        @Test(arguments: Return.allCases)
        func `the tool's report at its timeout is true`(comeback: Return) async throws {
            try await withSite { site in
                var sequencer = try await site.sequencer(data: "log")
                _ = try await site.worker("w1", of: sequencer)
                let child = try site.start(
                    [
                        "dispatch", "document/*", "-", "--json", "--connect", sequencer.address,
                        "--timeout", "1s",
                    ], input: .pipe)
                child.feed([#"{"set":{"at":"/a","value":1}}"#])
                _ = try await child.output.line(0)
                sequencer.child.signal(SIGSTOP)
                child.feed([#"{"set":{"at":"/a","value":2}}"#])
                _ = try await child.errors.first { $0.contains("withdrawing") }
                switch comeback {
                case .never: break
                case .goesOn: sequencer.child.signal(SIGCONT)
                case .startsAgain:
                    sequencer.child.signal(SIGKILL)
                    _ = try await sequencer.child.end()
                    sequencer = try await site.sequencer(data: "log", at: sequencer)
                }
                #expect(try await child.end() == .exited(83))
                let output = try await child.output.all()
                try #require(output.count == 2)
                let result = try object(output[1])
                let code = result[key: "error"]?[key: "code"]
                if comeback == .never {
                    #expect(code == "timedOut")
                    sequencer.child.signal(SIGCONT)
                }
                let log = try await site.run(
                    "log", "--json", "--connect", sequencer.address, "--target", "document/*")
                let isLogged = log.output.contains { $0.contains(#""value":2"#) }
                if code == "withdrawn" { #expect(!isLogged) }
                if code == nil { #expect(isLogged && result[key: "sequence"] != nil) }
                #expect(code == nil || code == "withdrawn" || code == "timedOut")
            }
        }
    }
}
