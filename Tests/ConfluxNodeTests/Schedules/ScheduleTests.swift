import Conflux
import ConfluxNode
import ConfluxSequencer
import Foundation
import Testing

/// What a reducer schedules happens once, whichever processes come and go (P12).
@Suite(.timeLimit(.minutes(5)))
struct ScheduleTests {
    /// Far enough away that nothing here waits for it.
    private static let never = 86_400_000

    /// Nodes, each with a replica of the cinema.
    private func withCinemas(
        _ count: Int,
        _ body: (_ world: World, _ nodes: [Node], _ cinemas: [ModelStore<Cinema>]) async throws ->
            Void
    ) async throws {
        try await withWorld { world in
            var (nodes, cinemas): ([Node], [ModelStore<Cinema>]) = ([], [])
            for index in 0..<count {
                let node = try await world.node("node-\(index)")
                nodes.append(node)
                cinemas.append(try await node.store(Cinema.self))
            }
            try await body(world, nodes, cinemas)
            for node in nodes { await node.close() }
        }
    }

    @Test func `what a reducer schedules happens once, in every replica, with one entry`()
        async throws
    {
        try await withCinemas(3) { _, nodes, cinemas in
            let commits = cinemas[2].committedActions.values
            let held = try await cinemas[0].dispatch(.hold(17, milliseconds: 60)).receipt()
            for cinema in cinemas { try await wait(for: cinema) { $0.notes == ["expired 17"] } }
            let end = try await cinemas[1].dispatch(.note("end")).receipt()
            for node in nodes { try await node.wait(for: end) }
            for cinema in cinemas {
                #expect(cinema.notes == ["expired 17", "end"] && cinema.schedule.isEmpty)
                #expect(cinema.times == cinemas[0].times)
            }
            #expect(cinemas[0].times[0] >= held.timestamp + .milliseconds(60))
            // Of three hosts, one made an entry. The others' were rejected.
            var actions: [Cinema.Action] = []
            for await commit in commits {
                actions.append(commit.action)
                if commit.action == .note("end") { break }
            }
            #expect(actions == [.hold(17, milliseconds: 60), .timePassed, .note("end")])
        }
    }

    @Test func `what is cancelled or replaced by the reducer does not happen`() async throws {
        try await withCinemas(2) { _, _, cinemas in
            let (one, two) = (cinemas[0], cinemas[1])
            one.dispatch(.hold(1, milliseconds: 40))
            try await two.dispatch(.pay(1)).receipt()
            try await two.dispatch(.hold(2, milliseconds: 200)).receipt()
            for cinema in cinemas { try await wait(for: cinema) { $0.notes == ["expired 2"] } }
            #expect(one.held == [1] && two.held == [1])
        }
    }

    @Test func `another host sees to it if one leaves`() async throws {
        try await withCinemas(2) { _, nodes, cinemas in
            try await cinemas[0].dispatch(.hold(3, milliseconds: 150)).receipt()
            try await nodes[1].barrier()
            await nodes[0].close()
            try await wait(for: cinemas[1]) { $0.notes == ["expired 3"] }
        }
    }

    @Test func `a closed store gets no ticks, and those of others stay as they are`() async throws {
        try await withCinemas(2) { _, nodes, cinemas in
            try await cinemas[0].dispatch(.hold(4, milliseconds: 100)).receipt()
            nodes[0].close(cinemas[0])
            try await wait(for: cinemas[1]) { $0.notes == ["expired 4"] }
            #expect(cinemas[0].held == [4] && cinemas[0].notes == [])
        }
    }

    @Test func `what was due while nobody hosted happens when the store is hosted again`()
        async throws
    {
        try await withWorld { world in
            let first = try await world.node()
            let cinema = try await first.store(Cinema.self)
            try await cinema.dispatch(.hold(5, milliseconds: 50)).receipt()
            try await cinema.dispatch(.remind(every: 20)).receipt()
            await first.close()
            // Time passes in the log.
            let other = try await world.node()
            let journal = try await other.store(Journal.self)
            try await journal.dispatch(.write("later"), after: .milliseconds(100)).receipt()
            try await wait(for: journal) { $0.lines == ["later"] }

            let again = try await other.store(Cinema.self)
            try await wait(for: again) { $0.count(of: "expired 5") == 1 }
            #expect(again.notes.first == "reminds" && again.value.count(of: "reminds") >= 1)
            try await wait(for: again) { $0.count(of: "reminds") >= 3 }
            #expect(again.value.count(of: "expired 5") == 1)
            await other.close()
        }
    }

    @Test func `a process that joins late has the schedule from the snapshot`() async throws {
        try await withCinemas(1) { world, nodes, cinemas in
            try await cinemas[0].dispatch(.hold(6, milliseconds: Self.never)).receipt()
            try await cinemas[0].dispatch(.hold(7, milliseconds: 300)).receipt()
            let late = try await world.node()
            let replica = try await late.store(Cinema.self)
            #expect(replica.schedule["hold-6"] == cinemas[0].schedule["hold-6"])
            await nodes[0].close()
            try await wait(for: replica) { $0.notes == ["expired 7"] }
            #expect(replica.held == [6] && replica.schedule.items.map(\.key) == ["hold-6"])
            await late.close()
        }
    }

    @Test func `an action that comes when something is due finds that it has happened`()
        async throws
    {
        try await withCinemas(2) { _, nodes, cinemas in
            try await cinemas[0].dispatch(.hold(8, milliseconds: 30)).receipt()
            // Each attempt is refused as long as the seat is held. Then the first one gets it.
            var attempts = 0
            while true {
                attempts += 1
                do throws(DispatchError) {
                    try await cinemas[1].dispatch(.hold(8, milliseconds: Self.never)).receipt()
                    break
                } catch {
                    try #require(error.code == .refused)
                }
            }
            try await nodes[0].barrier()
            #expect(cinemas[0].notes == ["expired 8"] && cinemas[0].held == [8], "\(attempts)")
        }
    }

    @Test func `transactions, which try their actions on copies, and reads make nothing happen`()
        async throws
    {
        try await withCinemas(2) { _, nodes, cinemas in
            let other = try await nodes[0].store(Cinema.self, named: "other")
            try await cinemas[0].dispatch(.hold(9, milliseconds: 20)).receipt()
            var tries = 0
            // Before and after the seat has expired.
            while !cinemas[0].notes.contains("expired 9") || tries < 5 {
                tries += 1
                let number = tries
                let done = try await nodes[0].transaction { transaction in
                    try transaction.dispatch(.note("try \(number)"), to: cinemas[0])
                    try transaction.dispatch(.note("try \(number)"), to: other)
                }
                try #require(done.receipt != nil)
                let read = try await nodes[0].read(cinemas[0], other) { ($0.notes, $1.notes) }
                #expect(read.0.filter { $0 != "expired 9" } == read.1)
            }
            try await nodes[1].barrier()
            for cinema in cinemas {
                #expect(cinema.value.count(of: "expired 9") == 1 && cinema.held == [])
                #expect(cinema.notes.count == tries + 1)
            }
        }
    }

    @Test func `a store that is frozen waits, and continues when it is thawed`() async throws {
        try await withCinemas(2) { _, nodes, cinemas in
            try await cinemas[0].dispatch(.hold(10, milliseconds: 40)).receipt()
            try await nodes[1].freeze(cinemas[1])
            let journal = try await nodes[0].store(Journal.self)
            try await journal.dispatch(.write("later"), after: .milliseconds(150)).receipt()
            try await wait(for: journal) { $0.lines == ["later"] }
            #expect(cinemas[0].notes == [] || cinemas[0].notes == ["expired 10"])
            try await nodes[1].thaw(cinemas[1])
            for cinema in cinemas { try await wait(for: cinema) { $0.notes == ["expired 10"] } }
        }
    }

    @Test func `a lock of the store lets time wait, and other actions of the host go on`()
        async throws
    {
        try await withCinemas(2) { _, nodes, cinemas in
            try await cinemas[0].dispatch(.hold(16, milliseconds: 150)).receipt()
            let lock = try await nodes[0].lock(cinemas[0])
            // Only the other node hosts it now.
            nodes[0].close(cinemas[0])
            let journal = try await nodes[1].store(Journal.self)
            for _ in 0..<10 {
                let count = journal.lines.count
                try await journal.dispatch(.write("line"), after: .milliseconds(20)).receipt(
                    within: .seconds(8))
                try await wait(for: journal) { $0.lines.count > count }
            }
            try await lock.release()
            try await wait(for: cinemas[1]) { $0.notes == ["expired 16"] }
        }
    }

    @Test func `a check that refuses to hear of time is reported, and other actions tell it`()
        async throws
    {
        try await withCinemas(1) { _, nodes, cinemas in
            let events = nodes[0].events
            try await cinemas[0].dispatch(.mute).receipt()
            try await cinemas[0].dispatch(.hold(11, milliseconds: 10)).receipt()
            let event = try await first(of: events) {
                if case .tickFailed = $0 { true } else { false }
            }
            guard case .tickFailed(let store, let message) = event else { return }
            #expect(store.description == "cinema/shared" && message.contains("Refused"))
            #expect(cinemas[0].held == [11])
            try await cinemas[0].dispatch(.note("entry")).receipt()
            #expect(cinemas[0].notes == ["expired 11", "entry"])
        }
    }

    @Test func `a sequencer that starts again changes nothing about it`() async throws {
        try await withAddress { address in
            let folder = FileManager.default.temporaryDirectory
                .appendingPathComponent("conflux-\(Identifier.random())")
            defer { try? FileManager.default.removeItem(at: folder) }
            func start() throws -> Sequencer {
                try Sequencer.start(
                    SequencerConfiguration(bind: address, storage: .folder(folder.path, .init())))
            }
            let sequencer = try start()
            let node = try await Node.connect(to: address, scope: Scope())
            let cinema = try await node.store(Cinema.self)
            try await cinema.dispatch(.hold(12, milliseconds: 100)).receipt()
            try await cinema.dispatch(.hold(13, milliseconds: Self.never)).receipt()
            await sequencer.stop()
            let again = try start()
            try await wait(for: cinema) { $0.notes == ["expired 12"] }
            #expect(cinema.held == [13])
            await node.close()

            // From the log alone, it is the same.
            let late = try await Node.connect(to: address, scope: Scope())
            let replica = try await late.store(Cinema.self)
            #expect(replica.notes == ["expired 12"] && replica.schedule.items.count == 1)
            #expect(replica.times == cinema.times)
            await late.close()
            await again.stop()
        }
    }

    @Test func `a store of this process alone keeps its schedule by its own clock`() async throws {
        let cinema = Scope().run { ModelStore<Cinema>() }
        let held = try await cinema.dispatch(.hold(14, milliseconds: 20)).receipt()
        try await wait(for: cinema) { $0.notes == ["expired 14"] }
        #expect(cinema.times[0] >= held.timestamp + .milliseconds(20))
        // A node takes it over with what is still to come.
        try await cinema.dispatch(.hold(15, milliseconds: 100)).receipt()
        try await withWorld { world in
            let node = try await world.node()
            try await node.replicate(cinema)
            try await wait(for: cinema) { $0.notes == ["expired 14", "expired 15"] }
            await node.close()
        }
    }
}
