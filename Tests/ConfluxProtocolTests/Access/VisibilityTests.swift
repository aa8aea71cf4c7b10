import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Which stores match a pattern, and what a reader sees of the log who may not observe all stores.
struct VisibilityTests {
    @Test(arguments: [
        ("orders", "orders/shared", true), ("orders", "orders/7", false),
        ("orders/*", "orders/7", true),
        ("orders", "orders2/shared", false), ("orders/7", "orders/7", true),
        ("orders/7", "orders/77", false), ("*", "a/shared", true), ("*", "a/b", false),
        ("*/*", "a/b", true), ("*/shared", "a/shared", true),
        ("*/shared", "a/b", false), ("user-*/a*z", "user-1/abz", true),
        ("user-*/a*z", "user-1/abza", false), ("a*b*c/x", "aXbYbZc/x", true),
        ("a*b*c/x", "abcb/x", false), ("**/**", "a/b", true),
    ])
    func `a pattern matches the stores that fit it`(text: String, store: String, fits: Bool) throws
    {
        let store = try #require(StoreName(store.lowercased()))
        #expect(try #require(StorePattern(text.lowercased())).covers(store) == fits)
    }

    /// All texts of 1 to 4 of these characters.
    private func texts(of characters: String) -> [String] {
        var texts = [""]
        for _ in 1...4 { texts += texts.flatMap { text in characters.map { text + "\($0)" } } }
        return Set(texts).filter { !$0.isEmpty }.sorted()
    }

    /// Whether a text matches a pattern, by the definition.
    private func fits(_ text: Substring, _ pattern: Substring) -> Bool {
        guard let first = pattern.first else { return text.isEmpty }
        if first == "*" {
            return fits(text, pattern.dropFirst())
                || !text.isEmpty && fits(text.dropFirst(), pattern)
        }
        return text.first == first && fits(text.dropFirst(), pattern.dropFirst())
    }

    @Test func `every short pattern matches exactly its names`() throws {
        let names = texts(of: "ab")
        #expect(names.count == 30)
        for text in texts(of: "ab*") {
            let part = try #require(StorePattern("\(text)/x"))
            for name in names {
                let store = try #require(StoreName("\(name)/x"))
                #expect(part.covers(store) == fits(name[...], text[...]), "\(text) \(name)")
            }
        }
    }

    @Test func `a pattern of the longest length matches the longest names`() throws {
        let long = String(repeating: "a", count: Name.lengthMax)
        let store = try #require(StoreName("\(long)/\(long)"))
        for (text, fits) in [
            (long, true), (long.dropLast() + "b", false), (long.dropLast() + "*", true),
            (String(repeating: "*a", count: 32), true), ("*" + long.dropLast(2) + "b", false),
        ] {
            #expect(try #require(StorePattern("\(text)/\(long)")).covers(store) == fits, "\(text)")
        }
    }

    @Test func `a right to a whole state needs a pattern for all of its stores`() throws {
        let orders = try #require(Name("orders"))
        for (text, covers, touches) in [
            ("orders", false, true), ("orders/*", true, true), ("*", false, true),
            ("*/*", true, true), ("o*/*", true, true), ("orders/7", false, true),
            ("cart", false, false),
        ] {
            let pattern = try #require(StorePattern(text))
            #expect(pattern.covers(.state(orders)) == covers, "\(text)")
            #expect(pattern.touches(.state(orders)) == touches, "\(text)")
            #expect(StorePattern("\(pattern)") == pattern)
        }
        #expect(StorePattern("orders/*")?.covers(.event(orders)) == false)
        #expect(StorePattern("*/*")?.covers(.event(orders)) == true)
    }

    @Test(arguments: [
        "", "/", "a/", "/a", "a/b/c", "A", "a b", "a,b", "é", String(repeating: "a", count: 65),
    ])
    func `text that is not a pattern is refused`(text: String) {
        #expect(StorePattern(text) == nil)
    }

    @Test func `entries that may not be observed are empty, and all others unchanged`() throws {
        var batch = BatchBuilder()
        func add(_ target: String, _ payload: String) throws {
            batch.append(
                target: BatchTarget(
                    target: try #require(Target(target)), schemaVersion: 1, coding: .json),
                payload: Array(payload.utf8))
        }
        try add("cart/1", "\"mine\"")
        try add("list/shared", "\"theirs\"")
        try add("cart/*", "\"ours\"")
        try add("list/*", "\"all of theirs\"")
        var builder = CommitBuilder(
            log: Identifier(high: 1, low: 2), epoch: Epoch(3), predecessor: Epoch(3),
            first: SequenceNumber(5))
        let state = EncodedState(coding: .json, bytes: Array("{\"secret\":1}".utf8)[...])
        for name in ["list/shared", "cart/1"] {
            builder.append(
                .created(try #require(StoreName(name)), schemaVersion: 1, initial: state),
                by: Name("ops"))
        }
        builder.append(batch.finish(firstCounter: 4, settled: 1), from: Incarnation(3))
        let frame = builder.finish(timestamp: Timestamp(7))

        let rights = Rights(patterns: [.host: [try #require(StorePattern("cart/1"))]])
        let seen = try #require(rights.visible(frame: frame))
        #expect(seen.prefix(Frame.size) == frame.prefix(Frame.size))
        let before = try Commit.decode(body: frame.dropFirst(Frame.size))
        let after = try Commit.decode(body: Bytes(seen.dropFirst(Frame.size)))
        #expect(
            (after.log, after.epoch, after.first, after.count, after.timestamp)
                == (before.log, before.epoch, before.first, before.count, before.timestamp))
        var payloads: [String] = []
        var states: [Int] = []
        for block in after.blocks {
            switch block {
            case .batch(let incarnation, let batch):
                #expect(incarnation == Incarnation(3))
                #expect((batch.firstCounter, batch.settled) == (4, 1))
                payloads += batch.parsedEntries.map { String(decoding: $0.payload, as: UTF8.self) }
            case .event(.created(_, _, let initial), let owner):
                states.append(initial.bytes.count)
                #expect(owner == Name("ops"))
            case .event(let event, _): Issue.record("\(event)")
            }
        }
        #expect(payloads == ["\"mine\"", "", "\"ours\"", ""])
        #expect(states == [0, state.bytes.count])
        // If nothing is hidden, the frame is passed on unchanged.
        #expect(Rights.all.visible(frame: frame) == frame)
        let entries = Entries(
            request: 1, last: SequenceNumber(9), floor: SequenceNumber(1),
            commits: [Bytes(frame.dropFirst(Frame.size))])
        guard case .entries(let visible) = rights.visible(.entries(entries)) else {
            Issue.record("another message")
            return
        }
        #expect(visible.commits == [Bytes(seen.dropFirst(Frame.size))])
    }

    // MARK: Messages

    private let cart = StoreName("cart/1")!
    private let list = StoreName("list")!

    /// The rights to one permission for `cart/1`, and to nothing else.
    private func rights(_ permission: Rights.Permission) throws -> Rights {
        Rights(patterns: [permission: [try #require(StorePattern("cart/1"))]])
    }

    private func status() -> SequencerStatus {
        let divergence = DivergenceStatus(
            lastEqual: SequenceNumber(4), firstUnequal: SequenceNumber(6),
            nodes: [Incarnation(2)], isMajority: true, path: "/salaries/alice")
        return SequencerStatus(
            log: Identifier(high: 1, low: 2), epoch: Epoch(1), last: SequenceNumber(9),
            floor: SequenceNumber(1), checkpoint: .zero, sessions: [],
            stores: [cart, list].map { store in
                StoreStatus(
                    store: store, life: SequenceNumber(3), schemaVersion: 1, hosts: 2,
                    snapshot: SequenceNumber(3), divergence: divergence)
            })
    }

    private func answer(_ body: Answer.Body) -> SequencerMessage {
        .answer(Answer(number: 1, isLast: true, node: nil, deliveryTag: 5, body: body))
    }

    @Test(arguments: Rights.Permission.allCases)
    func `a status shows the place of a difference only to those who may read the store`(
        permission: Rights.Permission
    ) throws {
        let rights = try rights(permission)
        guard case .answer(let answer) = rights.visible(answer(.status(status()))),
            case .status(let seen) = answer.body
        else {
            Issue.record("no status")
            return
        }
        let isReader = permission == .observe || permission == .host
        #expect(
            seen.stores.map(\.divergence?.path) == [isReader ? "/salaries/alice" : nil, nil])
        // Everything else is names and numbers.
        var rest = status()
        for index in rest.stores.indices {
            rest.stores[index].divergence?.path = seen.stores[index].divergence?.path
        }
        #expect(seen == rest)
        #expect(
            Rights.all.visible(self.answer(.status(status()))) == self.answer(.status(status())))
    }

    @Test func `an answer has no state of a store that may no longer be observed`() throws {
        let rights = try rights(.observe)
        let bytes = Bytes("{\"secret\":1}".utf8)
        let mine = answer(.state(cart, SequenceNumber(7), bytes))
        #expect(rights.visible(mine) == mine)
        guard
            case .answer(let answer) = rights.visible(
                answer(.state(list, SequenceNumber(7), bytes))),
            case .failed(.notAllowed, let message) = answer.body
        else {
            Issue.record("the state is visible")
            return
        }
        #expect(message.contains("list/shared"))
        // The connection still acknowledges it.
        #expect(answer.deliveryTag == 5)
    }

    @Test func `a snapshot of a store that may no longer be observed is as if it were gone`() throws
    {
        let rights = try rights(.host)
        func served(_ store: StoreName) -> SnapshotServed {
            let place = SnapshotPlace(
                store: store, life: SequenceNumber(3), sequence: SequenceNumber(7))
            return SnapshotServed(
                request: 1, deliveryTag: 5,
                chunk: SnapshotChunk(
                    place: place, offset: 0, byteCount: 3, bytes: [1, 2, 3]))
        }
        #expect(rights.visible(.snapshotServed(served(cart))) == .snapshotServed(served(cart)))
        var none = served(list)
        none.chunk = .none(of: none.chunk.place)
        #expect(rights.visible(.snapshotServed(served(list))) == .snapshotServed(none))
    }
}
