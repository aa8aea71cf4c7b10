import Conflux
import Testing

struct MigrationTests {
    /// The third version of a shop's shelf: the first one had `left` instead of `count`, and the
    /// second one had no `minimum`.
    struct Shelf: Model, Equatable {
        static let name = "shelf"
        static let schemaVersion = 3
        var count = 0
        var minimum = 5
        var note: String?

        enum Action: Codable, Sendable { case add(amount: Int) }
        mutating func apply(_ action: Action, _ context: ActionContext) {}

        static func migrate(_ old: SnapshotReader, from version: Int) throws -> Shelf {
            if version < 2 {
                struct First: Decodable { var left: Int }
                return Shelf(count: try old.decode(First.self).left)
            }
            return try old.decode(filling: Shelf())
        }
    }

    /// A model without a migration.
    struct Plain: Model, Equatable {
        static let name = "plain"
        static let schemaVersion = 2
        var count: Int
        var note: String?

        init() { count = 0 }
        enum Action: Codable, Sendable { case add(amount: Int) }
        mutating func apply(_ action: Action, _ context: ActionContext) {}
    }

    private func shelf(_ json: String, _ version: Int) throws -> Shelf {
        try ModelState<Shelf>.snapshot(from: json.utf8, version: version)
    }

    @Test func `a renamed property is read by its former type`() throws {
        #expect(try shelf(#"{"left":7}"#, 1) == Shelf(count: 7))
    }

    @Test func `a new property has its initial value, and an optional one is nil`() throws {
        #expect(try shelf(#"{"count":7}"#, 2) == Shelf(count: 7, minimum: 5))
        #expect(
            try shelf(#"{"count":7,"note":"fragile"}"#, 2)
                == Shelf(count: 7, minimum: 5, note: "fragile"))
    }

    @Test func `a snapshot of this version is not migrated`() throws {
        #expect(try shelf(#"{"count":7,"minimum":1}"#, 3) == Shelf(count: 7, minimum: 1))
    }

    @Test func `a snapshot of this version in another form asks for a new version`() {
        let failure = #expect(throws: StoreError.self) { try shelf(#"{"count":7}"#, 3) }
        #expect(failure?.code == .formChanged)
        #expect((failure?.reason as? CodingFailure)?.code == .missingField)
        #expect(
            failure?.message == """
                The snapshot of shelf has schema version 3, as this program has, but another form: \
                expected a field "minimum". If this program's form is the right one, raise \
                schemaVersion of shelf to 4, and give shelf a migrate(_:from:) that reads version 3.
                """)
    }

    @Test func `a state without a migration reads snapshots with removed and optional properties`()
        throws
    {
        let plain = try ModelState<Plain>.snapshot(
            from: #"{"count":3,"gone":true}"#.utf8, version: 1)
        #expect(plain.count == 3 && plain.note == nil)
    }

    @Test func `a failed migration names the versions, the reason and what to do`() {
        let failure = #expect(throws: StoreError.self) {
            try ModelState<Plain>.snapshot(from: #"{"left":3}"#.utf8, version: 1)
        }
        #expect(failure?.code == .migrationFailed)
        #expect((failure?.reason as? CodingFailure)?.code == .missingField)
        #expect(
            failure?.message == """
                The snapshot of plain has schema version 1 and can't become one of version 2: \
                expected a field "count". Give plain a migrate(_:from:) that makes one: decode \
                what was then, or fill in what is new.
                """)
    }

    @Test func `a snapshot of a newer version is not read`() {
        let failure = #expect(throws: StoreError.self) {
            try shelf(#"{"count":7,"minimum":1}"#, 4)
        }
        #expect(failure?.code == .newerSnapshot)
        #expect(failure?.message.contains("Run a newer program") == true)
    }
}
