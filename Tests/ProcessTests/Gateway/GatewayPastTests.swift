import Conflux
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension ProcessTests {
    /// The past of a gateway's stores, and forks of its log, by real processes.
    struct GatewayPastTests {
        private static let path = "/stores/counter/shared"
        private static let add = #"{"add":{"amount":5}}"#

        @Test func `the past is read over HTTP as it was`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let gateway = try await site.gateway(of: sequencer)
                let http = gateway.http
                var numbers: [UInt64] = []
                for _ in 0..<5 {
                    numbers.append(try await http.dispatch(Self.add, to: "counter/shared"))
                }
                for (index, number) in numbers.enumerated() {
                    let past = try await http.ask("GET", "\(Self.path)?at=\(number)").json
                    #expect(past[key: "state"] == ["count": .integer(JSONInteger(5 * (index + 1)))])
                    #expect(past[key: "at"]?.number == number)
                    #expect(past[key: "sequence"]?.number == number)
                    #expect(past[key: "version"] == nil && past[key: "log"]?.string != nil)
                }
                let last = try #require(numbers.last)
                let without = try await http.ask(
                    "GET", "\(Self.path)?at=\(last)&without=\(numbers[1])")
                #expect(without.json[key: "state"] == ["count": 20])
                let difference = try await http.ask(
                    "GET", "\(Self.path)/difference?from=\(numbers[0])&to=\(last)"
                ).json
                let changes: JSONValue = [["op": "replace", "path": "/count", "value": 25]]
                #expect(difference[key: "changes"] == changes)
                #expect(difference[key: "from"]?.number == numbers[0])
                #expect(difference[key: "to"]?.number == last)
                let made = try await http.ask(
                    "GET", "\(Self.path)/difference?to=\(last)&without=\(numbers[1])"
                ).json
                #expect(
                    made[key: "changes"] == [["op": "replace", "path": "/count", "value": 20]])
                // The present is as it was.
                let state = try await http.ask("GET", Self.path)
                #expect(state.json[key: "state"] == ["count": 25] && state.tag != nil)
            }
        }

        @Test func `entries have what the store made of them`() async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let http = try await site.gateway(of: sequencer).http
                var numbers: [UInt64] = []
                for _ in 0..<5 {
                    numbers.append(try await http.dispatch(Self.add, to: "counter/shared"))
                }
                // It is in the log, and refused.
                let refused = try await http.ask(
                    "POST", "/stores/document/prefs/actions", body: #"{"remove":{"at":"/a"}}"#)
                let latest = try await http.ask("GET", "\(Self.path)/entries?limit=2").json
                func found(_ answer: JSONValue) -> [UInt64?] {
                    (answer[key: "entries"]?.array ?? []).map { $0[key: "sequence"]?.number }
                }
                #expect(found(latest) == Array(numbers.suffix(2)))
                let entry = latest[key: "entries"]?.array?.first
                #expect(entry?[key: "action"] == ["add": ["amount": 5]])
                #expect(entry?[key: "outcome"] == "applied" && entry?[key: "reason"] == nil)
                let before = try await http.ask(
                    "GET", "\(Self.path)/entries?before=\(numbers[3])&limit=2"
                ).json
                #expect(found(before) == Array(numbers[1...2]))
                let after = try await http.ask(
                    "GET", "\(Self.path)/entries?after=\(numbers[0])&limit=3"
                ).json
                #expect(found(after) == Array(numbers[1...3]))
                let between = try await http.ask(
                    "GET", "\(Self.path)/entries?after=\(numbers[0])&before=\(numbers[2])"
                ).json
                #expect(found(between) == [numbers[1]])
                let own = try await http.ask("GET", "\(Self.path)/difference?to=\(numbers[1])").json
                let back = try await http.ask(
                    "GET", "\(Self.path)/difference?from=\(numbers[1])&to=\(numbers[1] - 1)"
                ).json
                #expect(own[key: "changes"]?.array?.count == 1, "\(own)")
                #expect(back[key: "changes"]?.array?.count == 1, "\(back)")
                #expect(own[key: "changes"] != back[key: "changes"])
                let floor = try #require(after[key: "floor"]?.number)
                #expect(floor < numbers[0])
                #expect(try #require(after[key: "newest"]?.number) >= numbers[4])
                #expect(refused.status == 409, "\(refused)")
                let prefs = try await http.ask("GET", "/stores/document/prefs/entries").json
                let last = prefs[key: "entries"]?.array?.last
                #expect(last?[key: "outcome"] == "refused")
                #expect(last?[key: "reason"]?.string?.isEmpty == false)
                // What can't be shown, or asked, is a typed problem.
                for (query, status, code) in [
                    ("?at=\(numbers[4] + 1_000)", 404, "aboveNewest"), ("?at=0", 404, "belowFloor"),
                    ("?at=\(numbers[4])&without=\(floor)", 404, "belowFloor"),
                    ("/difference?from=5", 400, "invalidRequest"),
                    ("/entries?limit=1001", 400, "invalidRequest"),
                    ("/entries?after=1&limit=none", 400, "invalidRequest"),
                ] {
                    let answer = try await http.ask("GET", Self.path + query)
                    #expect(answer.status == status && answer.code == code, "\(query): \(answer)")
                }
            }
        }

        @Test func `pasts are made a few at a time, and those that were made are kept`()
            async throws
        {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let http = try await site.gateway(of: sequencer).http
                var numbers: [UInt64] = []
                for _ in 0..<20 {
                    numbers.append(try await http.dispatch(Self.add, to: "counter/shared"))
                }
                let configuration = URLSessionConfiguration.ephemeral
                configuration.httpMaximumConnectionsPerHost = 100
                let session = URLSession(configuration: configuration)
                defer { session.invalidateAndCancel() }
                let codes = try await withThrowingTaskGroup(of: Int.self) { group in
                    for index in 0..<100 {
                        let request = try http.request(
                            "GET", "\(Self.path)?at=\(numbers[index % 20])")
                        group.addTask {
                            let (_, response) = try await session.data(for: request)
                            return (response as? HTTPURLResponse)?.statusCode ?? 0
                        }
                    }
                    return try await group.reduce(into: [Int]()) { $0.append($1) }
                }
                // Each is answered, or told that too many wait.
                #expect(Set(codes).isSubset(of: [200, 429]) && codes.count { $0 == 200 } >= 34)
                // From a state that is kept, another one is made: forwards, and backwards from a snapshot.
                for index in [10, 11, 12, 5, 19] {
                    let past = try await http.ask("GET", "\(Self.path)?at=\(numbers[index])").json
                    #expect(
                        past[key: "state"] == ["count": .integer(JSONInteger(5 * (index + 1)))])
                    #expect(past[key: "epoch"]?.number != nil)
                }
            }
        }

        @Test func `the command shows what was, and a fork of the log goes its own way`()
            async throws
        {
            try await withSite { site in
                let (log, fork) = (site.path("log"), site.path("fork"))
                let sequencer = try await site.sequencer(data: "log")
                let http = try await site.gateway(of: sequencer).http
                let first = try await http.dispatch(Self.add, to: "counter/shared")
                let last = try await http.dispatch(Self.add, to: "counter/shared")
                let shown = try await site.run(
                    "observe", "counter", "--at", "\(first)", "--json", "--connect",
                    sequencer.address)
                #expect(
                    shown.output == [
                        #"{"at":\#(first),"sequence":\#(first),"state":{"count":5},"store":"counter/shared"}"#
                    ], "\(shown.message)")
                let differs = try await site.run(
                    "observe", "counter", "--at", "\(last)", "--diff", "\(first)", "--connect",
                    sequencer.address)
                #expect(differs.output == ["~ /count: 5 → 10"], "\(differs.message)")

                let made = try await site.run(
                    "fork", fork, "--data", log, "--at", "\(first)", "--json")
                #expect(made.end == .exited(0), "\(made.message)")
                let report = try object(made.output.first ?? "")
                let (id, old) = (report[key: "log"]?.string, report[key: "from"]?.string)
                #expect(id != nil && old != nil && id != old)
                let other = try await site.sequencer(data: "fork")
                let state = try await site.run(
                    "observe", "counter", "--at", "\(first)", "--json", "--connect", other.address)
                #expect(state.output == shown.output, "\(state.message)")
                let entries = try await site.run(
                    "log", "--json", "--from", "\(first)", "--connect", other.address)
                let marker = try entries.output.map { try object($0) }.first {
                    $0[key: "kind"] == "forked"
                }
                #expect(marker?[key: "from"]?.string == old)
                #expect(marker?[key: "sequence"]?.number == first + 2)
                // The fork goes on by itself.
                let again = try await site.gateway(of: other).http
                _ = try await again.dispatch(Self.add, to: "counter/shared")
                #expect(
                    try await again.ask("GET", Self.path).json[key: "state"] == ["count": 10])
                #expect(try await http.ask("GET", Self.path).json[key: "state"] == ["count": 10])

                for (target, number, code) in [
                    (fork, first, "notEmpty"), (site.path("a"), last + 1_000, "aboveNewest"),
                    ("/proc/conflux", first, "unusableFolder"),
                ] {
                    let failed = try await site.run(
                        "fork", target, "--data", log, "--at", "\(number)", "--json")
                    #expect(failed.message.contains("\"code\":\"\(code)\""), "\(failed.message)")
                    #expect(failed.end != .exited(0))
                }
                #expect(!FileManager.default.fileExists(atPath: site.path("a/log.sqlite")))
            }
        }
    }
}
