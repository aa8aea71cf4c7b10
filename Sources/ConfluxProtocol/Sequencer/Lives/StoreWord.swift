import ConfluxVocabulary

/// An entry about a life itself that is on its way to the log, and those who wait for it. A life
/// has one word at a time. Whoever wants another one asks again once this one is in the log.
struct StoreWord: Sendable {
    /// What the word says.
    enum Kind: Sendable, Equatable {
        /// The life has a newer schema version, and openers of it begin with this snapshot, whose migrated state has
        /// the digest.
        case upgraded(schemaVersion: UInt32, base: SequenceNumber, Digest)
        case frozen(FreezeReason)
        case thawed
        case dropped

        func event(of name: StoreName, life: SequenceNumber) -> LogEvent {
            switch self {
            case .upgraded(let version, let base, let digest):
                .upgraded(name, life: life, schemaVersion: version, base: base, digest: digest)
            case .frozen(let reason): .frozen(name, life: life, reason: reason)
            case .thawed: .thawed(name, life: life)
            case .dropped: .dropped(name, life: life)
            }
        }
    }

    let kind: Kind
    /// The nodes that will host the store once it is upgraded.
    private(set) var openers = Openers()
    /// Those who are told the entry's number.
    private(set) var askers = Askers()

    init(_ kind: Kind) {
        self.kind = kind
    }

    mutating func wait(_ opener: Opener) { openers.add(opener) }

    mutating func wait(_ asker: Asker, of sharer: Sharer) { askers.add(asker, of: sharer) }

    /// Those who waited before the word was said.
    mutating func wait(_ askers: Askers) { self.askers = askers }

    mutating func remove(openersOf incarnation: Incarnation) { openers.remove(incarnation) }
}

/// A life whose `created` entry is not in the log yet. The first opener's state becomes the
/// store's.
struct StoreBeginning: Sendable {
    let life: SequenceNumber
    let schemaVersion: UInt32
    let initial: EncodedState
    /// The name of the key that opened it first; nil if there were no keys.
    let creator: Name?
    private(set) var openers: Openers

    init(
        life: SequenceNumber, schemaVersion: UInt32, initial: EncodedState, creator: Name?,
        opener: Opener
    ) {
        self.life = life
        self.schemaVersion = schemaVersion
        self.initial = initial
        self.creator = creator
        openers = Openers()
        openers.add(opener)
    }

    mutating func wait(_ opener: Opener) { openers.add(opener) }

    mutating func remove(openersOf incarnation: Incarnation) { openers.remove(incarnation) }
}

/// A node that waits for a store.
struct Opener: Sendable {
    var incarnation: Incarnation
    var request: UInt64
    /// The schema versions as which it can host the store.
    var versions: SupportedVersions
    /// Whose share of the openers it counts for.
    var sharer: Sharer
}

/// The nodes that wait for a store to be created, or to be upgraded.
struct Openers: Sendable {
    /// The most openers of one store, which the keys share. *At the bound* an open fails with
    /// `tableFull`, and the node may try again.
    static let countMax = 1_024

    private(set) var all: [Opener] = []
    private var shares = Shares<Sharer>()

    func hasRoom(for sharer: Sharer) -> Bool { shares.hasRoom(for: sharer, of: Self.countMax) }

    /// Whether this request of the opener is one of them.
    func contains(_ opener: Opener) -> Bool {
        all.contains { $0.incarnation == opener.incarnation && $0.request == opener.request }
    }

    /// Adds an opener. A repeated request counts once.
    mutating func add(_ opener: Opener) {
        guard !contains(opener) else { return }
        all.append(opener)
        shares.add(of: opener.sharer)
    }

    mutating func remove(_ incarnation: Incarnation) {
        for opener in all where opener.incarnation == incarnation {
            shares.remove(of: opener.sharer)
        }
        all.removeAll { $0.incarnation == incarnation }
    }
}

/// Those who wait for one entry.
struct Askers: Sendable {
    /// The most who wait for one entry, a number that the keys share. *At the bound* a further one
    /// gets no answer, and asks again.
    static let countMax = 1_024

    private(set) var all: [Asker] = []
    private var shares = Shares<Sharer>()

    /// Adds an asker. A repeated request counts once.
    mutating func add(_ asker: Asker, of sharer: Sharer) {
        guard shares.hasRoom(for: sharer, of: Self.countMax), !all.contains(asker) else { return }
        all.append(asker)
        shares.add(of: sharer)
    }
}
