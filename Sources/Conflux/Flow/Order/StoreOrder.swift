import Synchronization

/// Knows which stores of a scope wait for which others, and guards how places in several lanes are
/// kept at once.
///
/// **Problem.** Places in several lanes, as of an event or a transaction, must stand in the same
/// order in all of them: otherwise two transactions could each wait for the other. So code that
/// keeps places in lanes of several states holds the registries of all of them. Code that keeps a
/// place in a lane that waits for others holds one lock of the scope.
// Sendable: all state is in mutexes and atomics.
final class StoreOrder: Sendable {
    fileprivate struct Edge {
        weak var lane: Lane?
    }

    /// Sendable: a weak reference to a Sendable object.
    fileprivate struct Graph: @unchecked Sendable {
        /// *Use*: the lanes that a lane waits for. *Invariant*: no cycle.
        var predecessors: [ObjectIdentifier: [Edge]] = [:]
    }

    private let graph = Mutex(Graph())
    private let isEmptyFlag = Atomic(true)
    private let reservation = Mutex(())

    /// Whether no store waits for another. Read before each dispatch.
    @inline(__always)
    var isEmpty: Bool { isEmptyFlag.load(ordering: .relaxed) }

    /// Whether a lane waits for another, or another for it.
    func concerns(_ lane: Lane) -> Bool {
        if isEmpty { return false }
        return graph.withLock { graph in
            graph.predecessors[ObjectIdentifier(lane)]?.contains { $0.lane != nil } ?? false
                || graph.predecessors.values.contains { $0.contains { $0.lane === lane } }
        }
    }

    /// Runs code that keeps places in lanes of several states at once.
    func reserving(_ body: () -> Void) { reservation.withLock { _ in body() } }

    /// Makes a lane wait for another.
    ///
    /// - Returns: A disposable that ends that; nil if the other lane waits for this one, directly
    ///   or through others.
    func add(_ lane: Lane, after other: Lane) -> AnyDisposable? {
        let (waiting, waitedFor) = (ObjectIdentifier(lane), ObjectIdentifier(other))
        let isAdded = graph.withLock { graph in
            guard !graph.reaches(waiting, from: waitedFor) else { return false }
            graph.predecessors[waiting, default: []].append(Edge(lane: other))
            isEmptyFlag.store(false, ordering: .relaxed)
            return true
        }
        guard isAdded else { return nil }
        lane.concernCount.add(1, ordering: .relaxed)
        return AnyDisposable { [weak self, weak lane] in
            lane?.concernCount.subtract(1, ordering: .relaxed)
            self?.remove(waiting, waitedFor)
        }
    }

    private func remove(_ waiting: ObjectIdentifier, _ waitedFor: ObjectIdentifier) {
        graph.withLock { graph in
            var edges = graph.predecessors[waiting] ?? []
            // Nobody waits for a lane that is gone.
            edges.removeAll { $0.lane == nil }
            if let place = edges.firstIndex(where: {
                $0.lane.map { ObjectIdentifier($0) } == waitedFor
            }) {
                edges.remove(at: place)
            }
            graph.predecessors[waiting] = edges.isEmpty ? nil : edges
            isEmptyFlag.store(graph.predecessors.isEmpty, ordering: .relaxed)
        }
    }

    /// What a lane must wait for before its next job: all that its predecessors have to do now.
    ///
    /// Called while places are kept.
    func hold(for lane: Lane) -> (any LaneHold)? {
        if isEmpty { return nil }
        let predecessors = graph.withLock { graph in
            graph.predecessors[ObjectIdentifier(lane)]?.compactMap(\.lane) ?? []
        }
        guard !predecessors.isEmpty else { return nil }
        let wait = OrderedWait(count: predecessors.count)
        var isIdle = true
        for predecessor in predecessors {
            if predecessor.whenDone({ wait.passed() }) { isIdle = false } else { wait.passed() }
        }
        return isIdle ? nil : wait
    }

    /// The order in which to keep places in lanes: lanes that others wait for come first.
    ///
    /// - Returns: The indices of the lanes.
    func sorted(_ lanes: [Lane]) -> [Int] {
        if isEmpty { return Array(lanes.indices) }
        return graph.withLock { graph in
            var known: [ObjectIdentifier: Int] = [:]
            let depths = lanes.map { graph.depth(of: $0, &known) }
            return lanes.indices.sorted { (depths[$0], $0) < (depths[$1], $1) }
        }
    }
}

extension StoreOrder.Graph {
    /// Whether `start` is the goal, or waits for it, directly or through others.
    fileprivate func reaches(_ goal: ObjectIdentifier, from start: ObjectIdentifier) -> Bool {
        var seen: Set<ObjectIdentifier> = []
        var open = [start]
        while let lane = open.popLast() {
            if lane == goal { return true }
            guard seen.insert(lane).inserted else { continue }
            open += predecessors[lane]?.compactMap { $0.lane.map { ObjectIdentifier($0) } } ?? []
        }
        return false
    }

    /// The length of the longest path to a lane that waits for none. Each lane is visited once.
    fileprivate func depth(of lane: Lane, _ known: inout [ObjectIdentifier: Int]) -> Int {
        if let depth = known[ObjectIdentifier(lane)] { return depth }
        var depth = 0
        for edge in predecessors[ObjectIdentifier(lane)] ?? [] {
            if let before = edge.lane { depth = max(depth, self.depth(of: before, &known) + 1) }
        }
        known[ObjectIdentifier(lane)] = depth
        return depth
    }
}

/// A hold that ends when each of several lanes has come to a place.
private final class OrderedWait: LaneHold {
    private struct Content {
        var missing: Int
        var lane: Lane?
    }

    private let state: Mutex<Content>

    init(count: Int) {
        state = Mutex(Content(missing: count))
    }

    func arrive(_ lane: Lane) -> Bool {
        state.withLock { state in
            if state.missing == 0 { return true }
            state.lane = lane
            return false
        }
    }

    func abandon(_ lane: Lane) {
        state.withLock { $0.lane = nil }
    }

    /// One of the lanes has come to its place.
    func passed() {
        let lane = state.withLock { state -> Lane? in
            state.missing -= 1
            guard state.missing == 0 else { return nil }
            return exchange(&state.lane, with: nil)
        }
        lane?.resume(self)
    }
}

extension Scope {
    /// Makes a store wait for others. Before it commits an action, they have finished all work that
    /// they had when the action was dispatched, and their part of the same event or global action.
    ///
    /// Actions that a node delivers from the log come in the log's order only. So no store may wait, or be waited
    /// for, that a node replicates.
    ///
    /// ```swift
    /// try scope.order(total, after: prices, amounts)   // total reads both
    /// ```
    ///
    /// - Parameters:
    ///   - store: The store that waits, of this scope. A store of another scope, here or below, ends the
    ///     program with a message.
    ///   - other: The stores that it waits for, of this scope. They are not kept.
    /// - Returns: A disposable that ends the waiting. Releasing it ends nothing.
    /// - Throws: ``StoreError``: `cycle` when one of the others waits for the store, directly or
    ///   through others; `replicated` when a node replicates one of the stores. Then nothing has changed.
    @discardableResult
    public func order<S: State, each Other: State>(
        _ store: Store<S>, after other: repeat Store<each Other>
    ) throws(StoreError) -> any Disposable & Sendable {
        precondition(store.core.scope === self, "\(S.self)'s store belongs to another scope")
        var registrations: [AnyDisposable] = []
        var failure: StoreError?
        func add<Predecessor: State>(_ predecessor: Store<Predecessor>) {
            precondition(
                predecessor.core.scope === self,
                "\(Predecessor.self)'s store belongs to another scope")
            guard failure == nil else { return }
            if let lane = [store.core, predecessor.core].first(where: \.isRouted) {
                failure = .noOrder(of: lane)
            } else if let registration = order.add(store.core, after: predecessor.core) {
                // The registration ends with either of the two stores.
                registrations.append(store.core.ending(registration, with: predecessor.core))
            } else {
                failure = StoreError(
                    .cycle,
                    """
                    \(StoreIdentity(store.core)) can't wait for \(StoreIdentity(predecessor.core)), \
                    which waits for it: neither would ever continue. End one of the two waits.
                    """)
            }
        }
        repeat add(each other)
        if let failure {
            for registration in registrations { registration.dispose() }
            throw failure
        }
        return AnyDisposable { [registrations] in
            for registration in registrations { registration.dispose() }
        }
    }
}

extension StoreError {
    /// The log decides about the order of a replicated store's actions.
    fileprivate static func noOrder(of lane: Lane) -> StoreError {
        StoreError(
            .replicated,
            """
            A node replicates \(lane.identity), whose actions come in the order of the log alone. So it can't wait \
            for another store, and no store can wait for it. Put the values that depend on each other into one store.
            """)
    }
}

extension StoreCore {
    /// Whether the store waits for another one, or another one for it, by ``Scope/order(_:after:)``.
    package var isOrdered: Bool { scope.order.concerns(self) }
}
