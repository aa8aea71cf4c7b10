import ConfluxVocabulary

/// What each live node hosts and bridges, and where its replicas stopped, matching the lives and states. *Use*: to find
/// what ends with a node without searching every store.
struct HostingIndex: Sendable {
    /// What one node hosts and bridges.
    struct Node: Sendable {
        fileprivate(set) var stores: Set<StoreName> = []
        /// The stores whose replica has stopped. It hosts those that stopped after it had opened them.
        fileprivate(set) var stopped: Set<StoreName> = []
        fileprivate(set) var states: Set<Name> = []
    }

    /// *Invariant*: each of them hosts or bridges something, or has a replica that stopped.
    private var nodes: [Incarnation: Node] = [:]

    subscript(incarnation: Incarnation) -> Node? { nodes[incarnation] }

    /// The live nodes that host a store.
    var hosts: some Sequence<Incarnation> {
        nodes.lazy.filter { !$0.value.stores.isEmpty }.map(\.key)
    }

    /// Everybody who hosts or bridges something, or has a replica that stopped.
    var incarnations: some Sequence<Incarnation> { nodes.keys }

    mutating func add(_ store: StoreName, of incarnation: Incarnation) {
        nodes[incarnation, default: Node()].stores.insert(store)
        nodes[incarnation]?.stopped.remove(store)
    }

    mutating func add(_ state: Name, of incarnation: Incarnation) {
        nodes[incarnation, default: Node()].states.insert(state)
    }

    /// Sets which of a node's replicas are stopped.
    mutating func stop(_ stores: Set<StoreName>, of incarnation: Incarnation) {
        nodes[incarnation, default: Node()].stopped = stores
        forgetIfIdle(incarnation)
    }

    mutating func remove(_ store: StoreName, of incarnation: Incarnation) {
        nodes[incarnation]?.stores.remove(store)
        forgetIfIdle(incarnation)
    }

    mutating func remove(_ state: Name, of incarnation: Incarnation) {
        nodes[incarnation]?.states.remove(state)
        forgetIfIdle(incarnation)
    }

    mutating func remove(_ incarnation: Incarnation) -> Node? {
        nodes.removeValue(forKey: incarnation)
    }

    private mutating func forgetIfIdle(_ incarnation: Incarnation) {
        guard let node = nodes[incarnation], node.stores.isEmpty, node.states.isEmpty,
            node.stopped.isEmpty
        else { return }
        nodes[incarnation] = nil
    }
}
