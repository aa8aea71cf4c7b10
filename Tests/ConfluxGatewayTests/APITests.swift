import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker
import Testing

@testable import ConfluxGateway
@testable import ConfluxMonitoring

/// Who may use the API, and what its readers of events get.
struct APITests {
    /// The state of a store of which no past is asked.
    private struct Nothing: Model {
        static let name = "counter"
        enum Action: Codable, Sendable { case wait }

        mutating func apply(_ action: Action, _ context: ActionContext) {}
    }

    /// A store of which only the records are needed.
    private final class Store: AnyServedStore {
        let name = StoreName("counter/shared") ?? StoreName(state: .shared, instance: .shared)
        let records = ServedRecords()
        let catalog: ActionCatalog? = nil
        let replayed = HostedState(Nothing.self).replayed

        func submission(of json: [UInt8]) throws(CodingFailure) -> (BatchTarget, [UInt8]) {
            throw CodingFailure(.unknownAction, "it takes no actions")
        }

        func end(_ reason: String, isOver: Bool) { records.end(reason, isOver: isOver) }
        func settle(_ body: @escaping @Sendable (StoreVersion) -> Void) {
            body(StoreVersion(sequence: .zero))
        }

        func load(_ number: UInt64) {
            records.load(
                ServedRecords.State(
                    place: RecordPlace(sequence: SequenceNumber(number)),
                    position: SequenceNumber(number), body: Array("\(number)".utf8)))
        }

        func change(_ number: UInt64, byteCount: Int = 2) {
            let place = RecordPlace(sequence: SequenceNumber(number), epoch: Epoch(1))
            let body =
                [UInt8](repeating: UInt8(ascii: " "), count: byteCount - 2) + Array("[]".utf8)
            records.add(
                [],
                ServedRecord(
                    kind: .change, first: place.sequence, place: place, actionCount: 1, body: body),
                ServedRecords.State(
                    place: place, position: place.sequence, body: Array("\(number)".utf8)))
        }
    }

    static func decide(
        _ head: HTTPHead, token: String? = nil, hasKeys: Bool = false
    ) -> UInt32? {
        let service = APIService(
            token: token.flatMap { BearerToken($0) }, hasKeys: hasKeys, payloadBytesMax: 1_000,
            epochs: EpochTable(), streams: StreamHub(), past: { nil }, stores: { [] },
            ask: { _ in false }, feed: EntryFeed(CommitRing(), stores: { [] }), overview: { nil })
        return if case .answer(let answer) = service.decide(head) { answer.status } else { nil }
    }

    private static func head(
        _ headers: [String: String], _ method: String = "GET", _ path: String = "/api/v1/stores"
    ) -> HTTPHead {
        HTTPHead(method: method, path: path, query: [], headers: headers)
    }

    /// Every route, with what a store's routes may ask for: what it was, and what nobody serves.
    static let routes =
        ["openapi.json", "status", "entries", "stores"].map { ("GET", "/api/v1/\($0)") }
        + ["", "/difference", "/entries", "/events", "/actions"].map {
            ("GET", "/api/v1/stores/counter/shared\($0)")
        }
        + [("POST", "/api/v1/stores/counter/shared/actions"), ("POST", "/api/v1/decisions")]
        + [("GET", "/api/v1/none"), ("PUT", "/api/v1/stores")]

    @Test func `no route answers a stranger`() {
        for (method, path) in Self.routes {
            let type = ["content-type": "application/json"]
            func status(_ headers: [String: String], hasKeys: Bool = false) -> UInt32? {
                let head = Self.head(headers.merging(type) { $1 }, method, path)
                return Self.decide(head, hasKeys: hasKeys)
            }
            #expect(status(["host": "example.org"]) == 421, "\(path)")
            let origin = ["host": "localhost", "origin": "https://example.org"]
            #expect(status(origin) == 403, "\(path)")
            #expect(status(["host": "localhost"], hasKeys: true) == 403, "\(path)")
        }
    }

    @Test(arguments: [
        ("127.0.0.1:7412", true), ("localhost", true), ("LOCALHOST:80", true), ("[::1]:80", true),
        ("127.1.2.3", true), ("example.org", false), ("127.0.0.1.example.org", false), ("", false),
        ("localhost.example.org", false), ("10.0.0.1", false), ("[::2]", false),
        ("[::1]x", false), ("[::1].example.org:80", false), ("127.0.0.1:x", false),
    ])
    func `without a token, the API is only at the names of this machine`(
        host: String, isAdmitted: Bool
    ) {
        #expect(Self.decide(Self.head(["host": host])) == (isAdmitted ? nil : 421))
    }

    @Test func `with a token, every name will do, and without it none`() {
        let token = "0123456789abcdef"
        #expect(Self.decide(Self.head(["host": "localhost"]), token: token) == 401)
        let given = ["host": "example.org", "authorization": "Bearer \(token)"]
        #expect(Self.decide(Self.head(given), token: token) == nil)
        #expect(Self.decide(Self.head(given), token: token, hasKeys: true) == nil)
        #expect(Self.decide(Self.head(["host": "localhost"]), hasKeys: true) == 403)
    }

    @Test(arguments: [
        (["origin": "http://127.0.0.1:7412"], true), (["sec-fetch-site": "same-origin"], true),
        (["sec-fetch-site": "none"], true), (["origin": "https://example.org"], false),
        (["origin": "null"], false), (["sec-fetch-site": "cross-site"], false),
        (["sec-fetch-site": "same-site"], false),
    ])
    func `without a token, pages of other sites can't use the API`(
        headers: [String: String], isAdmitted: Bool
    ) {
        let head = Self.head(headers.merging(["host": "localhost"]) { $1 })
        #expect(Self.decide(head) == (isAdmitted ? nil : 403))
    }

    private func names(_ stream: EventStream) -> [String] {
        guard case .bytes(let pieces) = stream.next() else { return [] }
        return String(decoding: pieces.joined(), as: UTF8.self).split(separator: "\n")
            .filter { $0.hasPrefix("event: ") }.map { String($0.dropFirst(7)) }
    }

    @Test func `a reader that is too slow gets the state, and a fast one each change`() {
        let store = Store()
        store.load(1)
        let (fast, slow) = (
            EventStream(of: store, after: nil, isActions: false, EpochTable()),
            EventStream(of: store, after: nil, isActions: false, EpochTable())
        )
        #expect(names(fast) == ["state"] && names(slow) == ["state"])
        #expect(names(fast) == [])
        for number in 2..<UInt64(RecordRing.countMax + 3) {
            store.change(number)
            #expect(names(fast) == ["change"])
        }
        #expect(names(slow) == ["state"])
        #expect(names(slow) == [])
    }

    @Test func `a part of a stream is bounded, and the rest follows`() {
        let store = Store()
        store.load(1)
        let stream = EventStream(
            of: store, after: EventPosition(1), isActions: false, EpochTable())
        for number in 2..<12 { store.change(UInt64(number), byteCount: 30_000) }
        var all: [String] = []
        for _ in 0..<4 { all += names(stream) }
        #expect(all == [String](repeating: "change", count: 10))
    }

    @Test func `a stream tells that a store ended, once, and goes on when it is loaded again`() {
        let store = Store()
        store.load(5)
        let stream = EventStream(of: store, after: nil, isActions: false, EpochTable())
        #expect(names(stream) == ["state"])
        store.end("it has stopped", isOver: false)
        #expect(names(stream) == ["ended"])
        #expect(names(stream) == [])
        // Numbers may have gone back.
        for number in [3, 3, 9] as [UInt64] {
            store.load(number)
            #expect(names(stream) == ["state"])
            #expect(names(stream) == [])
            store.change(number + 1)
            #expect(names(stream) == ["change"])
        }
    }

    @Test func `what happened before a store ended comes before its end`() {
        let store = Store()
        store.load(1)
        let stream = EventStream(of: store, after: nil, isActions: false, EpochTable())
        #expect(names(stream) == ["state"])
        store.change(2)
        store.end("it was dropped", isOver: true)
        #expect(names(stream) == ["change"])
        #expect(names(stream) == ["ended"])
        guard case .end = stream.next() else {
            Issue.record("the stream goes on")
            return
        }
    }

    @Test func `an event's id counts only for the log and the epoch that it names`() {
        let (epochs, log) = (EpochTable(), LogID.random())
        epochs.begin(log)
        #expect(EventPosition("\(log)-1-5")?.isKnown(to: epochs) == false)
        #expect(EventPosition(5).isKnown(to: epochs))
        for id in ["", "5", "--", "\(log)-5", "\(log)-x-5", "\(log)-1-5-6"] {
            #expect(EventPosition(id) == nil, "\(id)")
        }
    }
}
