import ConfluxVocabulary

/// A store's way to a newer schema version, up to the word that says so (rule 17).
///
///     nearing ──▶ rehearsing ──▶ fencing ──▶ saving ──▶ migrating ──▶ the word `upgraded`
///                                   └── its snapshot has all entries ──▶ the word
///
/// It ends without a trace if a migration fails, or if a node that does not understand the version opens the store.
package struct Rise: Sendable {
    package enum Step: Sendable, Equatable {
        /// The hosts save a snapshot that has the entries up to this number. So a host that has just come has caught up
        /// before entries wait for it. If that takes too long, the rise goes on.
        case nearing(SequenceNumber)
        /// The nodes migrate the newest snapshot, one after the other. The store goes on meanwhile, so that a
        /// migration that fails, hangs or kills its process delays nobody.
        case rehearsing
        /// No entry for the store is admitted any more. Those up to this number are on their way to the log.
        case fencing(through: SequenceNumber)
        /// The hosts save a snapshot that has all entries.
        case saving
        /// All nodes migrate that snapshot.
        case migrating
        /// All have. The word is said as soon as there is no other one.
        case ready

        /// Whether entries for the store wait.
        var isHolding: Bool {
            switch self {
            case .nearing, .rehearsing: false
            case .fencing, .saving, .migrating, .ready: true
            }
        }
    }

    let version: UInt32
    let step: Step
    /// When the present step has failed.
    private(set) var deadline: Duration
    /// The nodes that have not been asked yet. The last one is next.
    private(set) var unasked: [Incarnation]
    /// The nodes whose answer is awaited.
    private(set) var asked: Set<Incarnation> = []
    /// The snapshot that the nodes migrate.
    private(set) var base: SequenceNumber
    /// The nodes that have migrated this snapshot, all with the same result.
    private(set) var proved: Set<Incarnation> = []
    /// That result; nil before the first answer.
    private(set) var digest: Digest?
    /// The node that is to be asked once more. It gets no more time for that.
    private var repeated: Incarnation?
    /// The nodes that will host the store once its version has risen.
    var openers: Openers
    /// Who asked for it.
    var wish: UpgradeWish

    /// Begins, behind the store's last entry.
    init(
        to version: UInt32, base: SequenceNumber, behind last: SequenceNumber,
        until deadline: Duration, wish: UpgradeWish
    ) {
        self.version = version
        self.base = base
        self.deadline = deadline
        self.wish = wish
        step = .nearing(last)
        unasked = []
        openers = Openers()
    }

    /// The next step of a rise.
    ///
    /// - Parameters:
    ///   - former: The rise.
    ///   - step: The step.
    ///   - base: The snapshot that nodes migrate in this step. If it is another one than before, what they have found
    ///     does not count any more.
    ///   - nodes: The nodes that must have migrated it.
    ///   - deadline: When the step has failed.
    init(
        _ former: Rise, _ step: Step, base: SequenceNumber, of nodes: Set<Incarnation> = [],
        until deadline: Duration
    ) {
        version = former.version
        openers = former.openers
        wish = former.wish
        self.base = base
        self.step = step
        self.deadline = deadline
        if base == former.base { (proved, digest) = (former.proved, former.digest) }
        unasked = nodes.subtracting(proved).sorted()
    }

    /// Whether every node has answered.
    var isAnswered: Bool { unasked.isEmpty && asked.isEmpty && digest != nil }

    /// The nodes that have not answered.
    var silent: Set<Incarnation> { asked.union(repeated.map { [$0] } ?? []) }

    /// The next node of the rehearsal migrates the newest snapshot, and may take as long as the one before.
    mutating func rehearse(from base: SequenceNumber, until deadline: Duration) {
        guard step == .rehearsing, asked.isEmpty, !unasked.isEmpty else { return }
        if repeated == nil { self.deadline = deadline }
        repeated = nil
        if base != self.base { (self.base, proved, digest) = (base, [], nil) }
    }

    /// - Returns: The nodes to ask now: the newest one, or all if the rehearsal is over.
    mutating func ask() -> [Incarnation] {
        guard asked.isEmpty else { return [] }
        let next = step == .rehearsing ? Array(unasked.suffix(1)) : unasked
        unasked.removeLast(next.count)
        asked = Set(next)
        return next
    }

    /// A node is asked, too.
    mutating func add(_ node: Incarnation) {
        guard !unasked.contains(node), !asked.contains(node) else { return }
        unasked.append(node)
        unasked.sort()
    }

    /// A node has to be asked once more.
    mutating func askAgain(_ node: Incarnation) {
        guard asked.remove(node) != nil else { return }
        unasked.append(node)
        unasked.sort()
        repeated = node
    }

    /// A node has migrated the snapshot.
    ///
    /// - Returns: Whether its state is that of the nodes before.
    mutating func take(_ digest: Digest, of node: Incarnation) -> Bool {
        asked.remove(node)
        proved.insert(node)
        defer { self.digest = digest }
        return self.digest == nil || self.digest == digest
    }
}

/// Those who ask for a rise, and what they allow for it.
struct UpgradeWish: Sendable {
    /// Those who are told the number of the word.
    private(set) var askers = Askers()
    /// Whether the newer program may judge the entries since the snapshot again: one of them allows it.
    private(set) var mayReplay = false
    /// Whether anybody has asked for it.
    private(set) var isTold = false

    mutating func add(_ asker: Asker, of sharer: Sharer, mayReplay: Bool) {
        askers.add(asker, of: sharer)
        isTold = true
        self.mayReplay = self.mayReplay || mayReplay
    }
}
