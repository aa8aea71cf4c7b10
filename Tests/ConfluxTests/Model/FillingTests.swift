import Conflux
import Testing

/// What a value in a former form gets from the present defaults.
struct FillingTests {
    struct Size: Codable, Equatable { var width = 3, depth = 4 }
    enum Door: Codable, Equatable { case none, single(Size) }
    struct Wall: Codable, Equatable {
        struct Window: Codable, Equatable {
            var size = Size()
            var pane = "glass"
        }
        var window = Window()
    }

    struct Room: Codable, Equatable {
        var size = Size()
        var wall = Wall()
        var chairs: [String: Size] = ["best": Size()]
        var tables = [Size()]
        var door = Door.single(Size())
        var bed: Size? = Size()
        var rug: Size?
        var limit: Int? = 10
        var isOpen = true
    }

    private func room(_ json: String) throws(CodingFailure) -> Room {
        try SnapshotReader(Array(json.utf8)).decode(filling: Room())
    }

    @Test func `nested parts are filled in, and existing values stay`() throws {
        let room = try room(#"{"size":{"width":9},"chairs":{"a":{"width":1,"depth":1}}}"#)
        #expect(room.size == Size(width: 9, depth: 4))
        #expect(room.chairs == ["a": Size(width: 1, depth: 1)])
        #expect(room.isOpen)
    }

    @Test func `parts are filled in at every depth`() throws {
        let room = try room(#"{"wall":{"window":{"size":{"depth":1}}}}"#)
        #expect(room.wall.window == Wall.Window(size: Size(width: 3, depth: 1), pane: "glass"))
        #expect(room.tables == [Size()] && room.chairs == ["best": Size()])
        #expect(room.door == .single(Size()))
    }

    @Test func `an optional that was nil stays nil, even if other parts are filled in`() throws {
        let room = try room(#"{"size":{}}"#)
        #expect(room.limit == nil && room.bed == nil)
    }

    @Test func `an optional's value is filled in if there is one by default`() throws {
        #expect(try room(#"{"bed":{"width":1}}"#).bed == Size(width: 1, depth: 4))
    }

    @Test(arguments: [
        (#"{"chairs":{"a":{"width":1}}}"#, "/chairs/a"),
        (#"{"chairs":{"best":{"width":1}}}"#, "/chairs/best"),
        (#"{"tables":[{"width":1}]}"#, "/tables/0"),
        (#"{"door":{"single":{"_0":{"width":1}}}}"#, "/door/single/_0"),
        (#"{"rug":{"width":1}}"#, "/rug"),
    ])
    func `what has no default is an error with its place and advice`(
        json: String, place: String
    ) {
        let failure = #expect(throws: CodingFailure.self) { try room(json) }
        #expect(failure?.code == .missingField)
        #expect(
            failure?.message == """
                at \(place): expected a field "depth", and there is no default for it: the default \
                value has nothing there, or it is inside an element of a collection, the values of a \
                case, or an optional that is nil. Decode this part as the type that it was, and make \
                the new one of it
                """)
    }

    @Test func `a value of another type is an error, and no default replaces it`() {
        let failure = #expect(throws: CodingFailure.self) { try room(#"{"size":5}"#) }
        #expect(failure?.code == .wrongType)
        #expect(throws: CodingFailure.self) { try room("[") }
    }

    /// Reports a member as missing that is there.
    struct Liar: Codable {
        var count = 1

        init() {}
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            throw DecodingError.keyNotFound(
                CodingKeys.count,
                .init(codingPath: container.codingPath, debugDescription: "it is gone"))
        }
    }

    @Test func `a type that always misses something is an error`() {
        let failure = #expect(throws: CodingFailure.self) {
            _ = try SnapshotReader(Array("{}".utf8)).decode(filling: Liar())
        }
        #expect(failure?.code == .missingField)
    }
}
