import Conflux
import ConfluxArguments
import ConfluxVocabulary
import ConfluxWorker
import Foundation
import Testing

@testable import ConfluxGateway
@testable import ConfluxMonitoring
@testable import ConfluxProtocol

/// The page of the console, and what is kept for those who watch.
struct ConsoleTests {
    private static func head(_ path: String, _ method: String = "GET") -> HTTPHead {
        HTTPHead(
            method: method, path: path, query: [],
            headers: ["host": "localhost", "content-type": "application/json"])
    }

    @Test func `the page needs no token, and what it shows does`() {
        let token = "0123456789abcdef"
        for path in ["/", "/console/app.js", "/console/views/store.js", "/console/operating.md"] {
            #expect(APITests.decide(Self.head(path), token: token) == 200, "\(path)")
        }
        for (method, path) in APITests.routes {
            #expect(APITests.decide(Self.head(path, method), token: token) == 401, "\(path)")
        }
        #expect(APITests.decide(Self.head("/console/none"), token: token) == 404)
        #expect(APITests.decide(Self.head("/console/../status"), token: token) == 404)
        #expect(APITests.decide(Self.head("/", "POST"), token: token) == 405)
    }

    @Test func `every file has its type and the policy`() {
        for (path, type) in [
            ("/", "text/html"), ("/console/console.css", "text/css"),
            ("/console/dom.js", "text/javascript"), ("/console/mark.svg", "image/svg+xml"),
        ] {
            let answer = ConsolePage.answer(Self.head(path))
            let headers = Dictionary(answer.headers.map { ($0.name, $0.value) }) { $1 }
            #expect(headers["Content-Type"]?.hasPrefix(type) == true, "\(path)")
            #expect(headers["Content-Security-Policy"] == ConsolePage.policy)
            #expect(headers["X-Content-Type-Options"] == "nosniff")
        }
        let sources = Set(ConsolePage.policy.split(separator: "; ").map(String.init))
        #expect(sources.isSuperset(of: ["default-src 'none'", "script-src 'self'"]))
        #expect(sources.isSuperset(of: ["frame-ancestors 'none'", "style-src 'self'"]))
    }

    @Test func `without a token nobody decides`() {
        #expect(APITests.decide(Self.head("/api/v1/decisions", "POST")) == 403)
    }

    @Test(arguments: [
        "{}", "[]", #"{"freeze":"One"}"#, #"{"drop":17}"#, #"{"freeze":"a/b","drop":"a/b"}"#,
        #"{"skip":1}"#, #"{"skip":-1,"target":"a/b"}"#, #"{"skip":1,"target":"?"}"#,
        #"{"handOver":17}"#, "{",
    ])
    func `what is no decision is refused`(json: String) {
        #expect(throws: Problem.self) { try Decision(json: Array(json.utf8)) }
    }

    // MARK: Entries

    private static func commit(_ number: UInt64, epoch: UInt64 = 1) -> Commit {
        Commit(
            log: LogID(high: 0, low: 1), epoch: Epoch(epoch), predecessor: .none,
            first: SequenceNumber(number), count: 1, timestamp: Timestamp(0),
            blocks: [.event(.left(Incarnation(7)))])
    }

    @Test func `only the newest commits are kept`() {
        let ring = CommitRing()
        let total = UInt64(CommitRing.commitsMax) + 10
        for number in 1...total { ring.note(Self.commit(number)) }
        let kept = ring.commits(behind: .zero)
        #expect(kept.count == CommitRing.commitsMax)
        #expect(kept.first?.first == SequenceNumber(11) && kept.last?.last == SequenceNumber(total))
        #expect(ring.commits(behind: SequenceNumber(total - 1)).count == 1)
        #expect(ring.counts.present.total == total)
    }

    @Test func `entries with which a store catches up are counted once`() {
        let ring = CommitRing()
        for number: UInt64 in [5, 6, 5, 6, 3] { ring.note(Self.commit(number)) }
        #expect(ring.counts.present.total == 2)
        // A later term may have numbers that were there before.
        ring.note(Self.commit(6, epoch: 2))
        #expect(ring.counts.present.total == 3)
    }

    @Test(arguments: [false, true])
    func `without HTTP nobody can look at the entries, so none are kept`(hasHTTP: Bool) throws {
        let program = Program(
            Gateway.command("gateway", knowing: []), version: "1", conventions: .conflux)
        let words = ["--ask", "tcp://127.0.0.1:0"] + (hasHTTP ? ["--http", "127.0.0.1:0"] : [])
        guard case .run(let arguments) = try program.parse(words) else {
            Issue.record("the line asks for no help")
            return
        }
        let service = try GatewayService(arguments, [], knowing: [])
        service.tap?(Self.commit(1))
        #expect(service.ring.counts.present.total == (hasHTTP ? 1 : 0))
        #expect(service.ring.commits(behind: .zero).count == (hasHTTP ? 1 : 0))
    }

    @Test func `nobody looks at the entries four times a second for no reader`() throws {
        let feed = EntryFeed(CommitRing(), stores: { [] })
        #expect(!feed.isTicking)
        // Its connection is never used, since nothing answers.
        let reader = HTTPExchange(
            try #require(OpaquePointer(bitPattern: 8)), bodyBytesMax: 0,
            tooLong: { ConsolePage.answer(Self.head("/")) }, { _, _ in })
        _ = feed.stream(for: reader, of: nil)
        #expect(feed.isTicking)
    }

    private struct Batch: Decodable {
        struct Entry: Decodable { let sequence: Int }
        let entries: [Entry]
        let left: Int
        let from: Int
        let through: Int
    }

    @Test func `of ten thousand entries, a batch has a sample of all, and says how many it lacks`()
        throws
    {
        let feed = EntryFeed(CommitRing(), stores: { [] })
        let commits = (1...10_000 as ClosedRange<UInt64>).map { Self.commit($0) }
        for isBeginning in [false, true] {
            let bytes = try #require(feed.batch(nil, of: commits, isBeginning: isBeginning))
            let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
            let event = try JSONDecoder().decode(Batch.self, from: Data(lines[1].dropFirst(6).utf8))
            #expect(event.entries.count == EntryFeed.entriesMax)
            // The first that a reader gets are the newest ones.
            #expect(event.entries.first?.sequence == (isBeginning ? 9_961 : 1))
            #expect(event.entries.last?.sequence == (isBeginning ? 10_000 : 9_751))
            #expect(event.left == (isBeginning ? 0 : 9_960))
            #expect(event.from == 1 && event.through == 10_000)
            #expect(bytes.count < 40 * 400, "\(bytes.count)")
        }
    }

    @Test func `an event tells what was left out`() throws {
        let bytes = EntryWriter.event(
            [Array("{}".utf8)], left: 3, SequenceNumber(4), SequenceNumber(9))
        #expect(
            String(decoding: bytes, as: UTF8.self)
                == "event: entries\ndata: {\"entries\":[{}],\"from\":4,\"left\":3,\"through\":9}\n\n"
        )
    }
}
