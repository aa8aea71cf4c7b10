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
        #expect(throws: CodingFailure.self) { try shelf(#"{"count":7}"#, 3) }
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

    // MARK: Default values

    struct Room: Codable, Equatable {
        struct Size: Codable, Equatable { var width = 3, depth = 4 }
        var size = Size()
        var chairs: [String: Size] = [:]
        var limit: Int? = 10
        var isOpen = true
    }

    private func room(_ json: String) throws -> Room {
        try SnapshotReader(Array(json.utf8)).decode(filling: Room())
    }

    @Test func `nested parts are filled in, and existing values stay`() throws {
        let room = try room(#"{"size":{"width":9},"chairs":{"a":{"width":1,"depth":1}}}"#)
        #expect(room.size == Room.Size(width: 9, depth: 4))
        #expect(room.chairs == ["a": Room.Size(width: 1, depth: 1)])
        #expect(room.isOpen)
    }

    @Test func `an optional that was nil stays nil, even if other parts are filled in`() throws {
        #expect(try room(#"{"size":{}}"#).limit == nil)
    }

    @Test func `an incomplete element is an error with its place`() throws {
        let failure = #expect(throws: CodingFailure.self) {
            try room(#"{"chairs":{"a":{"width":1}}}"#)
        }
        #expect(failure?.code == .missingField)
        #expect(failure?.message.contains("/chairs/a") == true)
    }

    @Test func `a value of another type is an error, and no default replaces it`() {
        let failure = #expect(throws: CodingFailure.self) { try room(#"{"size":5}"#) }
        #expect(failure?.code == .wrongType)
        #expect(throws: CodingFailure.self) { try room("[") }
    }
}
