import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// The stores here that get a commit.
enum Recipients {
    /// All attached stores.
    case attached
    /// These stores, which catch up.
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
    /// Whether the state handles an event.
    func handles(_ event: Name) -> Bool

    /// Removes a store that is no longer hosted.
    func remove(_ store: StoreName)

    /// Begins to gather runs for a commit, or for a part of it.
    ///
    /// - Parameters:
    ///   - first: Its first number.
    ///   - recipients: The stores that get it.
    func begin(at first: SequenceNumber, to recipients: Recipients)

    /// Takes the entries of a batch that concern stores of the state.
    ///
    /// It takes a whole batch at a time: for a single entry, to look up the state's types at run time
    /// would take longer than to decode it.
    ///
    /// - Parameters:
    ///   - batch: The batch. Entries of other states are skipped.
    ///   - first: The place of its first entry.
    func add(_ batch: Batch, at first: EntryPlace)

    /// Notes that an entry without an action concerns a store, whose position then rises with the commit.
    func pass(_ replica: Replica)

    /// Called when all added entries are decoded, and before any is applied.
    func endDecoding()

    /// Hands the added entries to the stores, as one run each.
    ///
    /// - Parameters:
    ///   - last: The last number of what was gathered.
    ///   - epoch: The present term.
    ///   - joint: Gets the runs of stores that apply the entries together, instead of their lanes; nil if each store
    ///     applies them by itself.
    /// - Returns: The progress of all stores that got a run, and the stores that stopped at an entry.
    func flush(
        through last: SequenceNumber, in epoch: Epoch, joining joint: inout [JointRun]?
    ) -> (given: [StoreProgress], stopped: [Replica])
}

/// The stores of one state in this node. Confined to the thread that applies.
final class StateStores {
    let name: Name
    private(set) var replicas = ByName<StoreName, Replica>()
    /// The progress of all stores of the state that are not replicated. It counts while the state is bridged.
    let locals: StoreProgress
    /// Whether global actions reach them.
    var isBridged = false
    /// Whether there was such a store since the state was bridged. Before that, it needs no feed.
    var isInhabited = false
    /// The runner. The first store or bridge makes it, since it knows the types.
    private(set) var runner: (any EntryRunner)?

    init(_ name: Name, locals: StoreProgress) {
        self.name = name
        self.locals = locals
    }

    /// The runner. If there is none yet, `make` makes it.
    func typed<Runner: EntryRunner>(_ make: (StateStores) -> Runner) -> Runner? {
        if runner == nil { runner = make(self) }
        return runner as? Runner
    }

    func insert(_ replica: Replica) { replicas[replica.name] = replica }

    func remove(_ name: StoreName) -> Replica? {
        runner?.remove(name)
        return exchange(&replicas[name], with: nil)
    }

    /// Whether no store here needs entries.
    var isIdle: Bool { !isBridged && replicas.isEmpty }

    /// The progress of everything that an entry for the whole state may concern.
    var progresses: [StoreProgress] {
        replicas.values.map(\.progress) + (isBridged ? [locals] : [])
    }

    /// The progress of everything here that an entry with this target may concern.
    func progresses(concernedBy target: Target) -> [StoreProgress] {
        switch target {
        case .store(let store): replicas[store].map { [$0.progress] } ?? []
        case .state, .event: progresses
        }
    }
}
