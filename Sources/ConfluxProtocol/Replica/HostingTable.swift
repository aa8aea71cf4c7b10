import ConfluxVocabulary

/// A store or state that this node hosts or bridges, or wants to.
struct Hosting: Sendable {
    enum Phase: Sendable, Equatable {
        /// To be asked for, once the subscription is proven or no feed is needed.
        case wanted
        /// Asked for, without an answer yet.
        case asked
        /// Hosted. Its snapshot is on its way.
        case loading(life: SequenceNumber)
        /// Hosted. The store was given the snapshot of this request. For a bridged state, the life
        /// and the request are zero.
        case opened(life: SequenceNumber, request: UInt64)

        /// The life that is hosted, as the sequencer knows it; nil before its answer.
        var life: SequenceNumber? {
            switch self {
            case .wanted, .asked: nil
            case .loading(let life), .opened(let life, _): life
            }
        }

        /// Tells apart what the applier says of this snapshot and what it says of a former one.
        var request: UInt64? {
            if case .opened(_, let request) = self { request } else { nil }
        }
    }

    var open: Open
    var phase: Phase {
        didSet { vote = nil }
    }
    /// The last snapshot that could not be loaded, and how often in a row.
    private(set) var unreadable: (place: SnapshotPlace, count: Int)?
    /// The replica's last vote. *Invariant*: kept only as long as the store is hosted without a
    /// break, since a state that is loaded later is another one.
    private(set) var vote: Vote?

    init(open: Open, phase: Phase) {
        self.open = open
        self.phase = phase
    }

    mutating func say(_ vote: Vote) {
        if case .opened(vote.place.life, _) = phase { self.vote = vote }
    }

    /// A snapshot can't be loaded.
    ///
    /// - Returns: Whether it is time to say so. While other hosts save another snapshot, it takes a moment until that is
    ///   offered.
    mutating func noteUnreadable(_ place: SnapshotPlace) -> Bool {
        let count = unreadable?.place == place ? unreadable?.count ?? 0 : 0
        unreadable = (place, count + 1)
        return count + 1 >= Self.unreadableMax
    }

    /// How often the same snapshot can't be loaded before the store fails to open. One attempt takes a second.
    private static let unreadableMax = 4

    mutating func forgetVote() { vote = nil }
}

/// Everything that a node hosts or bridges, or wants to. What has no answer yet is found at once, however many stores
/// are open.
struct HostingTable: Sendable {
    private var all: [HostingSubject: Hosting] = [:]
    /// What is to be asked for, by request.
    private var wanted: [UInt64: HostingSubject] = [:]
    /// What was asked for and has no answer yet, by request.
    private var asked: [UInt64: HostingSubject] = [:]

    subscript(subject: HostingSubject) -> Hosting? {
        get { all[subject] }
        set {
            if let former = all[subject]?.open.request {
                wanted[former] = nil
                asked[former] = nil
            }
            all[subject] = newValue
            guard let newValue else { return }
            switch newValue.phase {
            case .wanted: wanted[newValue.open.request] = subject
            case .asked: asked[newValue.open.request] = subject
            case .loading, .opened: break
            }
        }
    }

    func checkInvariants() throws(BrokenInvariant) {
        var (wants, asks) = (0, 0)
        for (subject, hosting) in all {
            let request = hosting.open.request
            switch hosting.phase {
            case .wanted:
                wants += 1
                try hold(wanted[request] == subject, "\(subject) is wanted")
            case .asked:
                asks += 1
                try hold(asked[request] == subject, "\(subject) is asked for")
            case .loading, .opened: break
            }
            guard let vote = hosting.vote else { continue }
            try hold(hosting.phase.life == vote.place.life, "a vote for another life of \(subject)")
        }
        try hold(wants == wanted.count && asks == asked.count, "a request for what is not hosted")
    }

    var count: Int { all.count }
    var subjects: some Collection<HostingSubject> { all.keys }
    /// Whether the answer to an open is due.
    var isAsking: Bool { !asked.isEmpty }

    /// - Returns: The subject that the request asked for, if it has no answer yet.
    func asked(by request: UInt64) -> HostingSubject? { asked[request] }

    /// - Returns: The stores and states that this node hosts and bridges, as the sequencer knows
    ///   them.
    func hosted() -> (stores: [HostedStore], states: [StateBridge]) {
        var stores: [HostedStore] = []
        var states: [StateBridge] = []
        for (subject, hosting) in all {
            guard let life = hosting.phase.life else { continue }
            switch subject {
            case .store(let store):
                stores.append(
                    HostedStore(
                        store: store, life: life, versions: hosting.open.versions))
            case .state(let state):
                states.append(
                    StateBridge(
                        state: state, schemaVersion: hosting.open.versions.newest,
                        shapes: hosting.open.shapes))
            }
        }
        return (stores.sorted { $0.store < $1.store }, states.sorted { $0.state < $1.state })
    }

    /// The last votes of the replicas, ascending by store.
    var votes: [Vote] {
        all.values.compactMap(\.vote).sorted { $0.place.store < $1.place.store }
    }

    /// Forgets the votes: the sequencer has no use for them any more.
    mutating func forgetVotes() {
        for (subject, hosting) in all where hosting.vote != nil { all[subject]?.forgetVote() }
    }

    mutating func remove(_ subject: HostingSubject) -> Hosting? {
        defer { self[subject] = nil }
        return all[subject]
    }

    /// A request or its answer may be lost: everything without an answer is to be asked for again.
    mutating func wantAgain() {
        for subject in asked.values { self[subject]?.phase = .wanted }
    }

    /// - Returns: The opens that are asked for from now on, in the order in which they were wanted.
    mutating func askForWanted() -> [Open] {
        let subjects = wanted.sorted { $0.key < $1.key }.map(\.value)
        for subject in subjects { self[subject]?.phase = .asked }
        return subjects.compactMap { all[$0]?.open }
    }
}
