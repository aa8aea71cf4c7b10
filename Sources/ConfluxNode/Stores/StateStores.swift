import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// To which stores here a commit goes.
enum Recipients {
    /// To all that are attached.
    case attached
    /// To these, which catch up.
    case only(Set<HostingSubject>)

    func include(_ progress: StoreProgress) -> Bool {
        switch self {
        case .attached: progress.phase == .attached
        case .only(let subjects):
            progress.phase == .catchingUp && subjects.contains(progress.subject)
        }
    }
}

/// What hands entries to the stores of one state, by its types.
protocol EntryRunner: AnyObject {
    /// A store is hosted no longer.
    func remove(_ store: StoreName)

    /// Begins to gather runs for a commit.
    ///
    /// - Parameters:
    ///   - commit: Its numbers.
    ///   - recipients: To which stores it goes.
    func begin(_ commit: ClosedRange<SequenceNumber>, to recipients: Recipients)

    /// Takes those of a batch's entries that concern stores of the state.
    ///
    /// A whole batch at a time: an entry alone would cost more in finding out what the state's
    /// types are, at run time, than in being decoded.
    ///
    /// - Parameters:
    ///   - batch: The batch; entries of other states are passed over.
    ///   - first: Where its first entry stands.
    func add(_ batch: Batch, at first: EntryPlace)

    /// What was added is decoded, and nothing is applied yet.
    func endDecoding()

    /// Hands what was added to the stores, as one run each.
    ///
    /// - Returns: What was given something, and the stores that stopped at an entry.
    func flush() -> (given: [StoreProgress], stopped: [Replica])
}

/// The stores of one state in this node. Confined to the thread that applies.
final class StateStores {
    let name: Name
    private(set) var replicas = ByName<StoreName, Replica>()
    /// The stores of the state that are not replicated, together; they count while it is bridged.
    let locals: StoreProgress
    /// Whether global actions reach them.
    var isBridged = false
    /// Whether it had such a store since it was bridged. Until then they need no feed.
    var isInhabited = false
    /// Made with the first store or bridge, which knows the types.
    private(set) var runner: (any EntryRunner)?

    init(_ name: Name, locals: StoreProgress) {
        self.name = name
        self.locals = locals
    }

    /// What knows the types; `make` makes it for the first one that comes.
    func typed<Runner: EntryRunner>(_ make: (StateStores) -> Runner) -> Runner? {
        if runner == nil { runner = make(self) }
        return runner as? Runner
    }

    func insert(_ replica: Replica) { replicas[replica.name] = replica }

    func remove(_ name: StoreName) -> Replica? {
        runner?.remove(name)
        defer { replicas[name] = nil }
        return replicas[name]
    }

    /// Whether nothing here needs entries any more.
    var isIdle: Bool { !isBridged && replicas.isEmpty }

    /// All that an entry for the whole state may concern.
    var progresses: [StoreProgress] {
        replicas.values.map(\.progress) + (isBridged ? [locals] : [])
    }

    /// What an entry with this target may concern here.
    func progresses(concernedBy target: Target) -> [StoreProgress] {
        switch target {
        case .store(let store): replicas[store].map { [$0.progress] } ?? []
        case .state: progresses
        case .event: []
        }
    }
}
