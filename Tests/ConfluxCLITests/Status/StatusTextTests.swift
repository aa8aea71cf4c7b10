import ConfluxNode
@testable import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker
import Testing

@testable import ConfluxCLI

/// What `conflux status` shows as text.
struct StatusTextTests {
    private let counter = StoreName("counter/shared")!

    private func session(
        _ number: UInt64, name: String?, isLive: Bool = true, applied: UInt64 = 990,
        hosted: [StoreName] = []
    ) -> SessionStatus {
        SessionStatus(
            incarnation: Incarnation(number), name: name.flatMap { Name($0) }, isLive: isLive,
            applied: SequenceNumber(applied), lastCounter: 3, hosted: hosted, bridged: [])
    }

    private func store(_ name: StoreName, stopped: [StoppedReplica] = []) -> StoreStatus {
        StoreStatus(
            store: name, life: SequenceNumber(2), schemaVersion: 1, hosts: 2,
            snapshot: SequenceNumber(1_000_000),
            divergence: DivergenceStatus(
                lastEqual: SequenceNumber(100), firstUnequal: SequenceNumber(200),
                nodes: [Incarnation(5)], isMajority: true, path: "/items/3/amount"),
            stopped: stopped)
    }

    private func lines(_ sessions: [SessionStatus], _ stores: [StoreStatus]) -> [String] {
        let status = SequencerStatus(
            log: Identifier(high: .max, low: .max), epoch: Epoch(1 << 40),
            last: SequenceNumber(1_000), floor: SequenceNumber(1), checkpoint: .zero,
            sessions: sessions, stores: stores)
        return StatusText.lines(status, at: "tcp://192.168.100.100:17400")
    }

    @Test func `status fits 80 columns, however much a node hosts and whatever is found`() {
        let hosted = (1...40).map { StoreName("document/number-\($0)")! }
        let lines = lines(
            [session(5, name: "berlin-1", hosted: hosted)],
            [
                store(
                    counter,
                    stopped: [StoppedReplica(node: Incarnation(5), sequence: SequenceNumber(7))])
            ])
        #expect(lines.allSatisfy { $0.count <= 80 }, "\(lines.filter { $0.count > 80 })")
        #expect(lines.contains { $0.hasSuffix(" document/number-1 +39") })
        #expect(
            lines.contains { $0.hasPrefix("counter/shared stopped before entry 7 in berlin-1") })
        #expect(
            lines.contains { $0.hasPrefix("counter/shared diverged between entries 100 and 200") })
    }

    @Test func `a replica without a state has stopped at no entry`() throws {
        let replica = StoppedReplica(node: Incarnation(5), sequence: SequenceNumber(2))
        let store = store(counter, stopped: [replica])
        let text = lines([session(5, name: "berlin-1")], [store])
        #expect(text.contains { $0.hasPrefix("counter/shared could not be loaded in berlin-1") })
        var status = SequencerStatus(
            log: .none, epoch: Epoch(1), last: SequenceNumber(9), floor: SequenceNumber(1),
            checkpoint: .zero, sessions: [session(5, name: "berlin-1")], stores: [store])
        func json() -> String { "\(StatusFields.stores(status).map(\.json))" }
        #expect(json().contains("stopped") && !json().contains("sequence"))
        status.stores[0].stopped[0].sequence = SequenceNumber(3)
        #expect(json().contains("sequence"))
    }

    @Test(arguments: 1...23)
    func `a row shows as many stores as fit 80 columns, and how many more there are`(
        nameLength: Int
    ) throws {
        let hosted = (1...40).map { StoreName("document/number-\($0)")! }
        let name = String(repeating: "n", count: nameLength)
        let lines = lines([session(5, name: name, hosted: hosted)], [])
        let row = try #require(lines.first { $0.hasPrefix("\(name) ") })
        #expect(row.count <= 80)
        let shown = row.split(separator: " ").filter { $0.hasPrefix("document/") }
        #expect(shown.map(String.init) == hosted.prefix(shown.count).map(\.description))
        #expect(row.hasSuffix(" \(shown[shown.count - 1]) +\(40 - shown.count)"))
        // One more store would not fit.
        let wider =
            row.dropLast("+\(40 - shown.count)".count).count
            + "\(hosted[shown.count]) +\(39 - shown.count)".count
        #expect(wider > 80)
    }

    @Test func `a row shows one store at least, and a dash for none`() throws {
        let long = ["a", "b"].map { letter in
            StoreName(String(repeating: letter, count: 64) + "/1")!
        }
        let lines = lines(
            [session(5, name: "one", hosted: long), session(6, name: "none", hosted: [])], [])
        let one = try #require(lines.first { $0.hasPrefix("one ") })
        #expect(one.hasSuffix(" \(long[0]) +1"), "\(one)")
        let none = try #require(lines.first { $0.hasPrefix("none ") })
        #expect(none.hasSuffix(" 3           -"), "\(none)")
    }

    @Test(arguments: 1...30)
    func `findings are wrapped at 80 columns, with further lines indented`(
        nameLength: Int
    ) throws {
        let name = String(repeating: "n", count: nameLength)
        let stopped = [StoppedReplica(node: Incarnation(5), sequence: SequenceNumber(7))]
        let all = lines([session(5, name: name)], [store(counter, stopped: stopped)])
        let first = try #require(all.lastIndex(of: "")) + 1
        let findings = all[first...]
        #expect(findings.count > 2)
        for (line, next) in zip(findings, findings.dropFirst()) where next.hasPrefix("  ") {
            let word = try #require(next.split(separator: " ").first)
            #expect(line.count <= 80 && line.count + 1 + word.count > 80, "\(findings)")
        }
        let starts = findings.filter { !$0.hasPrefix(" ") }
        #expect(starts.count == 2 && starts.allSatisfy { $0.hasPrefix("counter/shared ") })
    }

    @Test func `a node that has not reported yet has no lag`() {
        let fresh = lines([session(5, name: "a", applied: 0, hosted: [counter])], [])
        #expect(fresh.contains { $0 == "a     5        live    -    3           counter/shared" })
        let known = lines([session(5, name: "a", applied: 990, hosted: [counter])], [])
        #expect(known.contains { $0 == "a     5        live    10   3           counter/shared" })
    }

    @Test func `nodes without a name that have left are counted, and others stay`() {
        let lines = lines(
            [
                session(5, name: nil, isLive: false), session(6, name: nil, isLive: false),
                session(7, name: "named", isLive: false), session(8, name: nil),
            ], [])
        #expect(lines.contains { $0 == "left, without a name: 2" })
        #expect(
            lines.contains { $0.hasPrefix("named  7") }
                && lines.contains { $0.hasPrefix("-      8") })
        #expect(!lines.contains { $0.hasPrefix("-      5") })
    }
}
