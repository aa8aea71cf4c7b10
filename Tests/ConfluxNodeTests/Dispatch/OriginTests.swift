import ConfluxNode
import Testing

/// Who dispatched an action, as observers learn it.
struct OriginTests {
    @Test func `if only the origin of an action reacts, the reaction comes once`() async throws {
        try await withWorld { world in
            let nodes = [try await world.node("alpha"), try await world.node("beta")]
            var books: [ModelStore<Journal>] = []
            for node in nodes {
                let book = try await node.store(Journal.self)
                book.committedActions.observe { [weak book] commit in
                    guard commit.isOwn, case .write(let line) = commit.action,
                        !line.hasPrefix("re: ")
                    else { return }
                    book?.dispatch(.write("re: \(line)"))
                }
                books.append(book)
            }
            for (name, book) in zip(["a", "b"], books) {
                for number in 0..<10 { book.dispatch(.write("\(name)\(number)")) }
            }
            for book in books { try await wait(for: book) { $0.lines.count == 40 } }
            // After the first round, all that was dispatched is in the log. After the second one, it is applied.
            for node in nodes + nodes { try await node.barrier() }
            #expect(Set(books[0].lines).count == 40)
            #expect(books[0].lines.count == 40 && books[1].lines == books[0].lines)
            for node in nodes { await node.close() }
        }
    }

    @Test func `every store of a bridged state knows what its process dispatched`() async throws {
        try await withWorld { world in
            let scopes = [Scope(), Scope()]
            var nodes: [Node] = []
            var seen: [AsyncStream<CommittedAction<TallyState>>] = []
            let stores = scopes.map { scope in
                scope.run {
                    Store<TallyState>(state: .init(), mutations: .init(), executor: .immediate)
                }
            }
            for (scope, store) in zip(scopes, stores) {
                let node = try await world.node(scope: scope)
                try await node.bridge(TallyState.self)
                nodes.append(node)
                seen.append(store.committedActions.values)
            }
            scopes[0].run { Store<TallyState>.actions.add(5) }
            for (index, commits) in seen.enumerated() {
                let commit = try await first(of: commits) { $0.action == .add(5) }
                #expect(commit.isOwn == (index == 0))
            }
            for node in nodes { await node.close() }
            withExtendedLifetime(stores) {}
        }
    }
}
