import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// The stores here that a commit goes to.
enum Recipients {
    /// All that are attached.
    case attached
    /// These, which catch up.
    case only(Set<HostingSubject>)

    func include(_ progress: StoreProgress) -> Bool {
        switch self {
        case .attached: progress.phase == .attached
        case .only(let subjects):
            progress.phase == .catchingUp && subjects.contains(progress.subject)
        }
    }
}

/// Hands entries to the stores of one state. It knows the state's types.
protocol EntryRunner: AnyObject {
    /// Forgets a store that is no longer hosted.
    func remove(_ store: StoreName)

    /// Begins to gather runs for a commit.
    ///
    /// - Parameters:
    ///   - commit: Its numbers.
    ///   - recipients: The stores that it goes to.
    func begin(_ commit: ClosedRange<SequenceNumber>, to recipients: Recipients)

    /// Takes the entries of a batch that concern stores of the state.
    ///
    /// It takes a whole batch at a time. For a single entry, looking up the state's types at run
    /// time would cost more than decoding.
    ///
    /// - Parameters:
    ///   - batch: The batch; entries of other states are passed over.
    ///   - first: The place of its first entry.
    func add(_ batch: Batch, at first: EntryPlace)

    /// Everything that was added is decoded, and nothing is applied yet.
    func endDecoding()

    /// Hands what was added to the stores, one run per store.
    ///
    /// - Returns: What was given entries, and the stores that stopped at an entry.
    func flush() -> (given: [StoreProgress], stopped: [Replica])
}

/// The stores of one state in this node. Confined to the thread that applies.
final class StateStores {
    let name: Name
    private(set) var replicas = ByName<StoreName, Replica>()
    /// The stores of the state that are not replicated, together. They count while the state is
    /// bridged.
    let locals: StoreProgress
    /// Whether global actions reach them.
    var isBridged = false
    /// Whether the state has had such a store since it was bridged. Until then, the local stores
    /// need no feed.
    var isInhabited = false
    /// Made with the first store or bridge, whose registration knows the types.
    private(set) var runner: (any EntryRunner)?

    init(_ name: Name, locals: StoreProgress) {
        self.name = name
        self.locals = locals
    }

    /// The runner, which knows the types. The first call makes it with `make`.
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

    /// The progress of everything here that an entry for the whole state may concern.
    var progresses: [StoreProgress] {
        replicas.values.map(\.progress) + (isBridged ? [locals] : [])
    }

    /// The progress of everything here that an entry with this target may concern.
    func progresses(concernedBy target: Target) -> [StoreProgress] {
        switch target {
        case .store(let store): replicas[store].map { [$0.progress] } ?? []
        case .state: progresses
        case .event: []
        }
    }
}
