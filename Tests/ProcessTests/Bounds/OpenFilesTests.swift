import Foundation
import Spawning
import Testing

#if os(Linux)
    extension ProcessTests {
        /// Programs that may have only few files and connections open.
        struct OpenFilesTests {
            /// A program, and its exit codes when it can't open what it needs.
            struct Use: CustomTestStringConvertible {
                let words: [String]
                let codes: Set<Int32>

                init(_ codes: Set<Int32>, _ words: String...) {
                    self.words = words
                    self.codes = codes
                }

                var testDescription: String { words[0] }
            }

            /// The words in capitals are replaced by what they stand for.
            static let uses = [
                Use([70, 73, 74], "sequencer", "--bind", "tcp://127.0.0.1:0", "--data", "NEW"),
                Use(
                    [69, 70, 73], "worker", "--name", "alpha", "--store", "counter", "--journal",
                    "NEW", "--connect", "HERE"),
                Use([69, 70], "status", "--connect", "HERE"),
                Use([66, 69, 70], "dispatch", "counter", "--file", "LINES", "--connect", "HERE"),
                Use([73, 74], "backup", "NEW", "--data", "LOG"),
            ]

            /// The words that begin a program with a limit on its open files.
            private func prefix(_ limit: Int) -> [String] {
                ["/bin/sh", "-c", "ulimit -n \(limit); exec \"$@\"", "sh"]
            }

            @Test(arguments: uses)
            func `a program that can't open another file says so, and what to do`(
                use: Use
            ) async throws {
                try await withSite { site in
                    let sequencer = try await site.sequencer(data: "log")
                    let lines = try site.write("", to: "lines")
                    // With fewer, the system's library of queues may trap before the program can say anything.
                    let least = 10
                    for limit in stride(from: least, through: 60, by: 3) {
                        let words = use.words.map { word in
                            switch word {
                            case "NEW": site.path("new-\(limit)")
                            case "HERE": sequencer.address
                            case "LINES": lines
                            case "LOG": site.path("log")
                            default: word
                            }
                        }
                        let child = try site.start(words, behind: prefix(limit))
                        if let line = try await child.output.line(0) {
                            // It has all that it needs. The first lines of a service say that it is ready.
                            #expect(limit > least, "\(line)")
                            return
                        }
                        let outcome = try await Tool.outcome(of: child)
                        guard case .exited(let code) = outcome.end, use.codes.contains(code) else {
                            Issue.record("with a limit of \(limit): \(outcome)")
                            return
                        }
                        let message = outcome.errors.last ?? ""
                        #expect(message.contains("ulimit -n"), "\(outcome)")
                        for wrong in ["rights", "damaged", "permi"] {
                            #expect(!message.contains(wrong), "\(outcome)")
                        }
                    }
                    Issue.record("60 files are not enough")
                }
            }

            @Test func `a sequencer without descriptors serves its peers, and accepts later`()
                async throws
            {
                try await withSite { site in
                    let free = try await site.sequencer()
                    _ = try await site.worker("alpha", of: free, stores: ["counter"])
                    let limit = try Memory.descriptors(of: free.child) + Self.spareCount
                    let sequencer = try await Site.$prefix.withValue(prefix(limit)) {
                        try await site.sequencer()
                    }
                    let worker = try await site.worker("alpha", of: sequencer, stores: ["counter"])
                    let late = try await onThread {
                        try Self.exhaust(sequencer, limit) {
                            try site.start(
                                ["status", "--connect", sequencer.address, "--timeout", "60s"])
                        }
                    }
                    let outcome = try await Tool.outcome(of: late)
                    #expect(outcome.end == .exited(0), "\(outcome)")
                    for child in [sequencer.child, worker.child] {
                        #expect(child.isRunning, "\(child.report)")
                        #expect(
                            !child.output.soFar.contains { $0.contains("disconnected") },
                            "\(child.report)")
                    }
                }
            }

            /// How many descriptors are left for the connections of the crowd. A sequencer admits more connections
            /// than these, however low its limit is.
            private static let spareCount = 12

            /// Opens connections until the sequencer has no descriptor left, and dispatches meanwhile on a connection
            /// that it had before.
            ///
            /// - Returns: A program that was started meanwhile. It is not served before the others' connections end.
            private static func exhaust(
                _ sequencer: RunningSequencer, _ limit: Int, start: () throws -> Child
            ) throws -> Child {
                let node = try RawNode(at: sequencer.address)
                let crowd = try RawCrowd(3 * spareCount)
                try crowd.connect(to: sequencer.address)
                let deadline = ContinuousClock.now + .seconds(60)
                while try Memory.descriptors(of: sequencer.child) < limit {
                    try node.load(1, payloadBytes: 100)
                    guard ContinuousClock.now < deadline else {
                        throw Failure("the sequencer still has descriptors after a minute")
                    }
                }
                let late = try start()
                try node.load(1_000, payloadBytes: 100)
                #expect(try Memory.descriptors(of: sequencer.child) == limit)
                #expect(late.isRunning)
                withExtendedLifetime(crowd) {}
                return late
            }
        }
    }
#endif
