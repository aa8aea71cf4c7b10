import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// Workers whose code is not deterministic: the digests show it.
    struct DivergenceTests {
        @Test(
            .timeLimit(.minutes(3)),
            arguments: ["unordered", "late", "lucky"])
        func `the differing one of three replicas is named, and loads the majority's state`(
            wrong: String
        ) async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let alpha = try await site.varyingWorker(
                    "alpha", hosting: "wordlist", of: sequencer)
                let beta = try await site.varyingWorker("beta", hosting: "wordlist", of: sequencer)
                let bad = try await site.varyingWorker(wrong, hosting: "wordlist", of: sequencer)
                let first = try await addWords(site, sequencer, from: 0)

                let told = try await site.event("diverged", of: bad)
                #expect(told[key: "store"] == "wordlist/shared")
                #expect(told[key: "majority"] == true && told[key: "reloading"] == true)
                #expect(told[key: "path"] == "/chosen/0")
                let from = try #require(told[key: "lastEqual"]?.number)
                let through = try #require(told[key: "firstUnequal"]?.number)
                #expect(from < through && through <= first + 10)
                for good in [alpha, beta] {
                    let told = try await site.event("diverged", of: good)
                    #expect(told[key: "majority"] == true && told[key: "reloading"] == false)
                    #expect(told[key: "firstUnequal"]?.number == through)
                }
                // Each node reports it once. So does the sequencer, which reports it again only when it knows the path.
                let noted = try await site.event("diverged", of: sequencer.child) {
                    $0[key: "path"] != nil
                }
                #expect(noted[key: "path"] == "/chosen/0")
                #expect(noted[key: "nodes"]?.array?.map { $0[key: "name"] } == [.string(wrong)])

                let status = try await site.status(of: "wordlist/shared", at: sequencer.address)
                let divergence = try #require(status[key: "divergence"])
                #expect(divergence[key: "lastEqual"]?.number == from)
                #expect(divergence[key: "firstUnequal"]?.number == through)
                #expect(divergence[key: "majority"] == true)
                #expect(
                    divergence[key: "nodes"]?.array?.map { $0[key: "name"] } == [.string(wrong)])
                #expect(divergence[key: "path"] == "/chosen/0")
                let words = try await site.run("status", "--connect", sequencer.address)
                #expect(
                    words.output.contains {
                        $0.contains("diverged between entries \(from) and \(through)")
                            && $0.contains(wrong)
                    }, "\(words.output)")

                // The faulty code stays faulty. It is reported once for an interval, not at each point.
                try await addWords(site, sequencer, from: 1_000)
                let good = try await states(site, sequencer, ["alpha", "beta"])
                #expect(Set(good).count == 1)
                let notes = try sequencer.child.output.soFar.filter {
                    try object($0)[key: "event"] == "diverged"
                }
                #expect(notes.count <= 2, "\(notes)")
            }
        }

        @Test(.timeLimit(.minutes(3)))
        func `neither of two differing replicas reloads, and both learn it`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let alpha = try await site.varyingWorker(
                    "alpha", hosting: "wordlist", of: sequencer)
                let bad = try await site.varyingWorker(
                    "unordered", hosting: "wordlist", of: sequencer)
                try await addWords(site, sequencer, from: 0)
                var paths: [JSONValue] = []
                for child in [alpha, bad] {
                    let told = try await site.event("diverged", of: child)
                    #expect(told[key: "majority"] == false && told[key: "reloading"] == false)
                    if let path = told[key: "path"] { paths.append(path) }
                }
                // The other node is the reference for the comparison, and has no path.
                #expect(paths == ["/chosen/0"])
                let noted = try await site.event("diverged", of: sequencer.child)
                #expect(noted[key: "majority"] == false)
                let status = try await site.status(of: "wordlist/shared", at: sequencer.address)
                let nodes = status[key: "divergence"]?[key: "nodes"]?.array ?? []
                #expect(nodes.map { $0[key: "name"] } == ["alpha", "unordered"])
                // Each keeps its own state, and continues.
                let states = try await states(site, sequencer, ["alpha", "unordered"])
                #expect(Set(states).count == 2)
            }
        }

        /// Adds words: more of them than the log has between two digest points.
        @discardableResult
        private func addWords(
            _ site: Site, _ sequencer: RunningSequencer, from first: Int
        ) async throws -> UInt64 {
            let padding = String(repeating: "x", count: 8 << 10)
            let lines = (first..<first + 80).map { index in
                #"{"add":{"padding":"\#(padding)","word":"w\#(index)"}}"#
            }
            return try await site.dispatch(lines: lines, to: "wordlist", at: sequencer.address)
        }

        /// The states of nodes after one more action.
        private func states(
            _ site: Site, _ sequencer: RunningSequencer, _ nodes: [String]
        ) async throws -> [String] {
            let sequence = try await site.dispatch(
                #"{"add":{"padding":"","word":"last"}}"#, to: "wordlist", at: sequencer.address)
            return try await site.sightings(
                of: "wordlist", at: sequencer.address, in: nodes, from: sequence
            ).map(\.state)
        }
    }
}
