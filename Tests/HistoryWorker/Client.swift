import ConfluxWorker

/// Performs random operations on lists, one after the other.
struct Client {
    private static let patiences: [Duration] = [.milliseconds(30), .milliseconds(300), .seconds(5)]

    let node: Node
    let lists: [(name: String, store: ModelStore<Values>)]
    let recorder: Recorder
    /// The first of the values that it appends. Those of others are far away.
    var next: Int

    /// Performs one operation.
    mutating func step() async throws {
        await Pause.wait(for: .milliseconds(Int.random(in: 1...20)))
        switch Int.random(in: 0..<10) {
        case 0..<4: try await transact()
        case 4..<6: try await append()
        case 6..<7: try await appendIfUnchanged()
        case 7..<9: try await read(isFresh: false)
        default: try await read(isFresh: true)
        }
    }

    private mutating func values(_ count: Int) -> [Int] {
        defer { next += count }
        return Array(next..<(next + count))
    }

    /// Reads one to three lists, and appends to one or two others, or to the same.
    private mutating func transact() async throws {
        let (node, patience) = (node, Self.patiences.randomElement() ?? .zero)
        let read = lists.shuffled().prefix(Int.random(in: 1...3))
        let changed = lists.shuffled().prefix(Int.random(in: 1...2)).map { list in
            (name: list.name, store: list.store, values: values(Int.random(in: 1...2)))
        }
        let appends = Dictionary(uniqueKeysWithValues: changed.map { ($0.name, $0.values) })
        try await recorder.record(.init(kind: "transaction", appends: appends)) {
            try await node.transaction(patience: patience) { tx in
                let seen = try read.map { ($0.name, try tx.read($0.store).all) }
                for list in changed {
                    for value in list.values {
                        try tx.dispatch(.append(value: value), to: list.store)
                    }
                }
                return Dictionary(uniqueKeysWithValues: seen)
            }.value
        }
    }

    private mutating func append() async throws {
        guard let list = lists.randomElement() else { return }
        let (value, patience) = (values(1), Self.patiences.randomElement() ?? .zero)
        try await recorder.record(.init(kind: "dispatch", appends: [list.name: value])) {
            try await dispatched(list.store.dispatch(.append(value: value[0])), within: patience)
            return [:]
        }
    }

    private mutating func appendIfUnchanged() async throws {
        guard let list = lists.randomElement() else { return }
        let (value, patience) = (values(1), Self.patiences.randomElement() ?? .zero)
        try await recorder.record(.init(kind: "condition", appends: [list.name: value])) {
            let (seen, version) = await list.store.read { $0.all }
            let handle = list.store.dispatch(.append(value: value[0]), ifUnchangedSince: version)
            try await dispatched(handle, within: patience)
            return [list.name: seen]
        }
    }

    /// Waits for an action. If that takes too long, it withdraws it.
    private func dispatched(_ handle: DispatchHandle, within patience: Duration) async throws {
        do throws(DispatchError) {
            _ = try await handle.receipt(within: patience)
        } catch {
            guard error.code == .timedOut, error.receipt == nil else { throw error }
            if try await handle.withdraw(within: .milliseconds(100)) == nil {
                throw error.withdrawn
            }
        }
    }

    /// Reads all lists at one place in the order.
    func read(isFresh: Bool) async throws {
        let (node, lists) = (node, lists)
        try await recorder.record(.init(kind: isFresh ? "fresh read" : "read", fresh: isFresh)) {
            if isFresh { try await node.barrier(patience: .seconds(5)) }
            return try await node.read(lists[0].store, lists[1].store, lists[2].store) {
                [lists[0].name: $0.all, lists[1].name: $1.all, lists[2].name: $2.all]
            }
        }
    }
}

extension DispatchError {
    /// The action is not in the log.
    fileprivate var withdrawn: DispatchError {
        DispatchError(code: .withdrawn, message: "withdrawn after: \(message)")
    }
}
