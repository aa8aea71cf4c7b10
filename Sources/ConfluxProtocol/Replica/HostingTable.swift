import ConfluxVocabulary

/// What this node hosts or bridges, or wants to.
struct Hosting: Sendable {
    enum Phase: Sendable, Equatable {
        /// To be asked for, once the subscription is proven.
        case wanted
        /// Asked for.
        case asked
        /// Hosted, and its snapshot is on its way.
        case loading(life: SequenceNumber)
        /// Hosted, and the store was given the snapshot of this request. Zero are the life and the
        /// request of a bridged state.
        case opened(life: SequenceNumber, request: UInt64)

        /// The life that is hosted, as the sequencer knows it.
        var life: SequenceNumber? {
            switch self {
            case .wanted, .asked: nil
            case .loading(let life), .opened(let life, _): life
            }
        }

        /// By which what the applier says of a former snapshot is told apart.
        var request: UInt64? {
            if case .opened(_, let request) = self { request } else { nil }
        }
    }

    var open: Open
    var phase: Phase {
        didSet { vote = nil }
    }
    /// What the replica said of its state last. *Invariant*: only as long as it is hosted without a
    /// break: a state that is loaded later is another one.
    private(set) var vote: Vote?

    init(open: Open, phase: Phase) {
        self.open = open
        self.phase = phase
    }

    mutating func say(_ vote: Vote) {
        if case .opened(vote.place.life, _) = phase { self.vote = vote }
    }

    mutating func forgetVote() { vote = nil }
}

/// What a node hosts or bridges, or wants to. What has no answer yet is at hand, however much is open.
struct HostingTable: Sendable {
    private var all: [HostingSubject: Hosting] = [:]
    /// By request, what is to be asked for.
    private var wanted: [UInt64: HostingSubject] = [:]
    /// By request, what is asked for.
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

    var count: Int { all.count }
    var subjects: some Collection<HostingSubject> { all.keys }
    /// Whether the answer to an open is due.
    var isAsking: Bool { !asked.isEmpty }

    /// - Returns: What was asked for by that request, and has no answer yet.
    func asked(by request: UInt64) -> HostingSubject? { asked[request] }

    /// - Returns: What the sequencer was asked for, as it knows it.
    func hosted() -> (stores: [HostedStore], states: [StateBridge]) {
        var stores: [HostedStore] = []
        var states: [StateBridge] = []
        for (subject, hosting) in all {
            guard let life = hosting.phase.life else { continue }
            switch subject {
            case .store(let store):
                stores.append(
                    HostedStore(
                        store: store, life: life, schemaVersion: hosting.open.schemaVersion))
            case .state(let state):
                states.append(
                    StateBridge(
                        state: state, schemaVersion: hosting.open.schemaVersion,
                        shapes: hosting.open.shapes))
            }
        }
        return (stores.sorted { $0.store < $1.store }, states.sorted { $0.state < $1.state })
    }

    /// What the replicas said last, ascending.
    var votes: [Vote] {
        all.values.compactMap(\.vote).sorted { $0.place.store < $1.place.store }
    }

    /// Nobody asks any more for what replicas said.
    mutating func forgetVotes() {
        for (subject, hosting) in all where hosting.vote != nil { all[subject]?.forgetVote() }
    }

    mutating func remove(_ subject: HostingSubject) -> Hosting? {
        defer { self[subject] = nil }
        return all[subject]
    }

    /// Question or answer may be lost: what is asked for is to be asked for again.
    mutating func wantAgain() {
        for subject in asked.values { self[subject]?.phase = .wanted }
    }

    /// - Returns: What is asked for from now on, in the order in which it was wanted.
    mutating func askForWanted() -> [Open] {
        let subjects = wanted.sorted { $0.key < $1.key }.map(\.value)
        for subject in subjects { self[subject]?.phase = .asked }
        return subjects.compactMap { all[$0]?.open }
    }
}
