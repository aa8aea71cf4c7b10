import Conflux
import ConfluxTesting
import Testing
import TicketModelUpgraded

struct UpgradeTests {
    @Test func `a hall of the first version gets a limit`() throws {
        let first = #"{"schedule":[],"seats":{"A1":{"customer":"ada","isSold":true}}}"#
        let changes = try MigrationChecker(Hall.self).changes(in: first, from: 1)
        #expect(changes.map(\.description) == ["+ /holdsMax: 4"])
    }

    @Test func `the limit holds once the version has risen`() {
        var hall = Hall()
        for seat in 1...4 {
            hall.apply(.hold(seat: "A\(seat)", customer: "ada"), ActionContext(schemaVersion: 1))
        }
        let fifth = Hall.Action.hold(seat: "A5", customer: "ada")
        #expect(throws: Never.self) { try hall.check(fifth, ActionContext(schemaVersion: 1)) }
        #expect(throws: HallRefusal.tooMany(4)) {
            try hall.check(fifth, ActionContext(schemaVersion: 2))
        }
    }
}
