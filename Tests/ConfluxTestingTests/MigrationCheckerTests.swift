import Conflux
import ConfluxTesting
import Foundation
import Synchronization
import Testing

struct MigrationCheckerTests {
    struct Shelf: Model {
        static let name = "shelf"
        static let schemaVersion = 2
        var count = 0
        var minimum = 5
        enum Action: Codable, Sendable { case add(amount: Int) }

        mutating func apply(_ action: Action, _ context: ActionContext) {}
        static func migrate(_ old: SnapshotReader, from version: Int) throws -> Shelf {
            struct First: Decodable { var left: Int }
            return Shelf(count: try old.decode(First.self).left)
        }
    }

    private let checker = MigrationChecker(Shelf.self)

    @Test func `the changes of a migration are told by key path`() throws {
        let changes = try checker.changes(in: #"{"left":7}"#, from: 1)
        #expect(changes.map(\.description) == ["+ /count: 7", "- /left: 7", "+ /minimum: 5"])
    }

    @Test func `a snapshot in a file is migrated, too`() throws {
        let file = FileManager.default.temporaryDirectory
            .appendingPathComponent("shelf-\(UUID().uuidString).json")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(#"{"left":7}"#.utf8).write(to: file)
        #expect(try checker.changes(in: file, from: 1).count == 3)
    }

    @Test func `a snapshot of the present version does not change`() throws {
        #expect(try checker.changes(in: #"{"count":1,"minimum":2}"#, from: 2).isEmpty)
    }

    @Test(arguments: [
        (#"{"left":"seven"}"#, 1, StoreError.Code.migrationFailed),
        (#"{"count":1}"#, 2, .formChanged),
        (#"{"count":1,"minimum":2,"note":"a"}"#, 2, .formChanged),
        (#"{"count":1,"minimum":2}"#, 3, .newerSnapshot),
        ("no JSON", 1, .incompatible),
    ])
    func `a snapshot that can't be migrated throws what opening its store would`(
        json: String, version: Int, code: StoreError.Code
    ) {
        let failure = #expect(throws: StoreError.self) {
            try checker.changes(in: json, from: version)
        }
        #expect(failure?.code == code)
    }

    struct Dice: Model {
        static let name = "dice"
        static let schemaVersion = 2
        static let throwCount = Atomic(0)
        var values = ["a": 0]
        enum Action: Codable, Sendable { case roll }

        mutating func apply(_ action: Action, _ context: ActionContext) {}
        static func migrate(_ old: SnapshotReader, from version: Int) throws -> Dice {
            Dice(values: ["a": throwCount.add(1, ordering: .relaxed).newValue])
        }
    }

    @Test func `a migration that gives something else each time is found`() {
        let failure = #expect(throws: StoreError.self) {
            try MigrationChecker(Dice.self).changes(in: "{}", from: 1)
        }
        #expect(failure?.code == .migrationFailed)
        #expect(failure?.message.contains("differ at /values/a") == true)
    }

    /// Encodes less than it has, so a replica that joins later has another state.
    struct Forgetful: Model {
        static let name = "forgetful"
        static let schemaVersion = 2
        var count = 0
        var writeCount = 0
        enum CodingKeys: CodingKey { case count, writeCount }
        enum Action: Codable, Sendable { case add }

        init() {}
        init(from decoder: any Decoder) throws {
            count = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .count)
        }
        mutating func apply(_ action: Action, _ context: ActionContext) {}
        static func migrate(_ old: SnapshotReader, from version: Int) throws -> Forgetful {
            var value = Forgetful()
            value.writeCount = 1
            return value
        }
    }

    @Test func `a result that comes back from its encoding as another one is found`() {
        let failure = #expect(throws: StoreError.self) {
            try MigrationChecker(Forgetful.self).changes(in: "{}", from: 1)
        }
        #expect(failure?.message.contains("differs at /writeCount") == true)
    }
}
