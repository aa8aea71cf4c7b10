import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// Commands that list one thing each.
    @Suite struct ListTests {
        @Test func `stores and nodes list what the status has`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let none = try await site.run("stores", "--connect", sequencer.address)
                #expect(none.output == ["no stores yet: a worker that hosts one creates it"])
                _ = try await site.worker("alpha", of: sequencer)
                let port = try #require(sequencer.address.split(separator: ":").last)
                let stores = try await site.run("stores", "--connect", "127.0.0.1:\(port)")
                let rows = stores.output.map { $0.split(separator: " ").map(String.init) }
                #expect(rows.count == 3, "\(stores.message)")
                #expect(
                    rows.first == ["STORE", "CREATED", "HOSTS", "SCHEMA", "SNAPSHOT", "STATUS"])
                #expect(rows.dropFirst().map { $0[0] } == ["counter/shared", "document/shared"])
                #expect(rows.dropFirst().allSatisfy { $0[2] == "1" && $0[5] == "ok" })

                let json = try await site.run("nodes", "-j", "-c", sequencer.address)
                let status = try await site.run("status", "-jc", sequencer.address)
                let sessions = try object(try #require(status.output.first))[key: "sessions"]
                // Positions change meanwhile.
                func names(_ sessions: [JSONValue]?) -> [JSONValue?]? {
                    sessions?.map { $0[key: "name"] }
                }
                #expect(try names(json.output.map(object)) == names(sessions?.array))
                let nodes = try await site.run("nodes", "-c", sequencer.address)
                #expect(nodes.output.count == 2)
                #expect(nodes.output.last?.hasPrefix("alpha ") == true)
                #expect(nodes.output.last?.hasSuffix(" counter/shared document/shared") == true)
            }
        }

        @Test func `ping counts answers, and sums up how long they took`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let run = try await site.run("ping", "-n", "3", "-c", sequencer.address)
                #expect(run.end == .exited(0), "\(run.message)")
                #expect(run.output.count == 4)
                #expect(run.output[2].hasPrefix("answer 3 of \(sequencer.address): "))
                #expect(run.output[3].hasPrefix("3 answers: least "))
                let json = try await site.run("ping", "-jn2", "-c", sequencer.address)
                let sum = try object(try #require(json.output.last))
                #expect(json.output.count == 3 && sum[key: "count"]?.number == 2)
                let figures = ["least", "median", "most"].compactMap { sum[key: $0]?.number }
                #expect(figures.count == 3 && figures == figures.sorted())
                let dead = try await site.run("ping", "-c", "127.0.0.1:1", "--timeout", "1s")
                #expect(dead.end == .exited(69))
            }
        }

        @Test func `actions lists those that the hosts of a state have told`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let address = sequencer.address
                let unknown = try await site.run("actions", "wordlst", "-c", address)
                #expect(unknown.end == .exited(84))
                _ = try await site.varyingWorker("one", hosting: "wordlist", of: sequencer)
                let meant = try await site.run("actions", "wordlst", "-c", address)
                #expect(meant.message.contains("Did you mean 'wordlist'?"), "\(meant.message)")
                let run = try await site.run("actions", "wordlist", "-c", address)
                #expect(
                    run.output.last
                        == #"{"add":{"padding":string,"word":string}}  conflux dispatch wordlist '{"add":{"padding":"text","word":"text"}}'"#,
                    "\(run.message)")
                let example = #"{"add":{"padding":"text","word":"text"}}"#
                let sent = try await site.run("dispatch", "wordlist", example, "-c", address)
                #expect(sent.end == .exited(0), "\(sent.message)")
            }
        }
    }
}
