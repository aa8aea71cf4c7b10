import ConfluxNode
@testable import ConfluxProtocol
import ConfluxVocabulary
import Testing

@testable import ConfluxCLI

@Suite struct `The screen of conflux top` {
    private let start = ContinuousClock.now

    private func look(
        last: UInt64, after seconds: Int, nodes: Int = 1, stores: Int = 1, counter: UInt64 = 0
    ) -> TopView.Look {
        let names = (0..<stores).compactMap { StoreName("document/number-\($0)") }
        return TopView.Look(
            status: SequencerStatus(
                log: Identifier(high: .max, low: .max), epoch: Epoch(7),
                last: SequenceNumber(last), floor: SequenceNumber(1), checkpoint: .zero,
                sessions: (0..<nodes).map {
                    SessionStatus(
                        incarnation: Incarnation(UInt64($0) + 2), name: Name("node-\($0)"),
                        isLive: true, applied: SequenceNumber(last - 1), lastCounter: counter,
                        hosted: names, bridged: [])
                },
                stores: names.map {
                    StoreStatus(
                        store: $0, life: SequenceNumber(3), schemaVersion: 1, hosts: 1,
                        snapshot: SequenceNumber(3), divergence: nil, stopped: [])
                }), at: start + .seconds(seconds))
    }

    private func view(_ look: TopView.Look, _ former: TopView.Look? = nil, entries: Int) -> TopView
    {
        TopView(
            address: "tcp://127.0.0.1:7400", look: look, former: former,
            entries: (0..<entries).map { "\($0)  " + String(repeating: "e", count: 100) })
    }

    @Test(
        arguments: [(80, 24), (40, 8), (200, 60), (20, 2)], [(1, 1), (100, 100), (0, 0), (3, 50)])
    func `the screen fits the terminal, however much there is`(
        size: (columns: Int, rows: Int), counts: (nodes: Int, stores: Int)
    ) {
        let view = view(
            look(last: 1_000, after: 0, nodes: counts.nodes, stores: counts.stores), entries: 200)
        let lines = view.lines(columns: size.columns, rows: size.rows)
        #expect(lines.count <= size.rows && lines.allSatisfy { $0.count <= size.columns })
        guard size.rows >= 24 else { return }
        #expect(lines.last?.hasPrefix("199  ") == true, "the newest entry is last")
        if counts.nodes == 100 { #expect(lines.contains { $0.hasSuffix(" more") }) }
        if counts.nodes == 3 { #expect(lines.contains { $0.hasPrefix("node-2 ") }) }
    }

    @Test func `rates are measured between two looks`() {
        let former = look(last: 1_000, after: 0, counter: 5)
        let first = view(former, entries: 0).lines(columns: 80, rows: 24)
        #expect(first[0].contains(" -/s "))
        let later = view(look(last: 3_000, after: 2, counter: 25), former, entries: 0)
            .lines(columns: 80, rows: 24)
        #expect(later[0].contains(" 1000/s "))
        #expect(later.contains { $0.hasPrefix("node-0") && $0.contains(" 10/s ") })
    }

    @Test func `a store's rate is that of the actions that concern it`() throws {
        let store = try #require(StoreName("document/number-0"))
        func look(_ seconds: Int, _ own: UInt64, _ all: UInt64) -> TopView.Look {
            var look = self.look(last: 1_000, after: seconds)
            look.counts = [.store(store): own, .state(store.state): all]
            return look
        }
        let lines = view(look(2, 30, 20), look(0, 10, 0), entries: 0).lines(columns: 80, rows: 24)
        #expect(lines.contains { $0.hasPrefix("document/number-0") && $0.contains(" 20/s ") })
    }

    @Test func `keys sort, filter, scroll, help and quit`() {
        var choice = TopChoice()
        func type(_ text: String) -> Bool {
            TopChoice.keys(in: Array(text.utf8)).contains { choice.take($0) }
        }
        func lines(nodes: Int = 3) -> [String] {
            var view = view(look(last: 1_000, after: 0, nodes: nodes, stores: 3), entries: 12)
            view.choice = choice
            return view.lines(columns: 80, rows: 40)
        }
        #expect(!type("\u{1B}[B") && choice.offset == 1)
        #expect(lines().contains { $0.hasPrefix("node-1 ") })
        #expect(!lines().contains { $0.hasPrefix("node-0 ") })
        // The last row stays, however far somebody scrolls.
        #expect(!type("\u{1B}[6~\u{1B}[6~"))
        #expect(lines().contains { $0.hasPrefix("node-2 ") })
        #expect(!type("s") && choice.order == .name && lines()[1].contains("by name"))
        // While a filter is typed, letters are letters.
        #expect(!type("/qs11") && choice.isTyping && choice.filter == "qs11")
        #expect(!type("\u{7F}\u{7F}\u{7F}\u{7F}number-2\r") && choice.filter == "number-2")
        #expect(lines().count { $0.hasPrefix("document/number-") } == 1)
        #expect(!type("\u{1B}") && choice.filter.isEmpty && choice.offset == 0)
        #expect(!type("?") && lines().contains { $0.contains("q: quit") })
        #expect(type("q"))
    }

    @Test func `titles are bold, and only a node that lags is yellow`() {
        // The node has all entries but the last.
        let look = look(last: 1_000, after: 2, nodes: 2)
        func styled(former: UInt64) -> [String] {
            view(look, self.look(last: former, after: 0), entries: 1)
                .lines(columns: 80, rows: 24) { "<\($1)>\($0)" }
        }
        let idle = styled(former: 1_000)
        #expect(idle.contains { $0.hasPrefix("<bold>NODE") })
        #expect(idle.contains { $0.hasPrefix("<bold>LAST ENTRIES") })
        #expect(idle.filter { $0.hasPrefix("<yellow>node-") }.count == 2)
        let busy = styled(former: 900)
        #expect(busy.filter { $0.hasPrefix("node-") }.count == 2)
    }
}
