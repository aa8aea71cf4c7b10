import ConfluxVocabulary

/// Lookups of stores and states.
extension StoreDirectory {
    func life(of name: StoreName) -> StoreLife? { lives[name] }

    func store(_ name: StoreName) -> StoreRecord? { lives[name]?.record }

    /// The life that the place names, if it is the store's present one.
    func life(_ place: SnapshotPlace) -> StoreLife? {
        lives[place.store].flatMap { $0.record.life == place.life ? $0 : nil }
    }

    /// How many stores there are, including those about to be created.
    var storeCount: Int { stores.total }

    /// The life for which entries are admitted. Its `created` entry may still be on its way to the
    /// log.
    func admittedLife(of name: StoreName) -> (life: SequenceNumber, schemaVersion: UInt32)? {
        if let beginning = beginnings[name] { return (beginning.life, beginning.schemaVersion) }
        guard let life = lives[name], !life.isEnding else { return nil }
        return (life.record.life, life.record.schemaVersion)
    }

    /// The live nodes that an entry for a target concerns.
    func hosts(of target: Target) -> Set<Incarnation> {
        var hosts: Set<Incarnation> = []
        if case .store = target {
        } else {
            for state in target.states { hosts.formUnion((states[state]?.bridges ?? [:]).keys) }
        }
        for name in names(concernedBy: target) {
            hosts.formUnion((lives[name]?.work.hosts ?? [:]).keys)
        }
        return hosts
    }

    /// Whether a live node bridges the state, or the log has seen it.
    func knows(state: Name) -> Bool { states[state] != nil }

    /// The last number that an opener of a store needs: the store's stamp. If entries concern the store after its
    /// snapshot, the opener needs the digest points after them, too. A vote says which entries were refused since the
    /// point before, so all replicas must know the same points.
    func lastNeeded(by name: StoreName) -> SequenceNumber {
        guard let store = lives[name]?.record else { return .zero }
        let stamp = stamp(of: store, name)
        return stamp > store.baseSequence ? max(stamp, store.lastPoint) : stamp
    }

    /// The highest number of an entry that concerns a store.
    func stamp(of name: StoreName) -> SequenceNumber {
        lives[name].map { stamp(of: $0.record, name) } ?? .zero
    }

    private func stamp(of store: StoreRecord, _ name: StoreName) -> SequenceNumber {
        store.stamp(states[name.state]?.load)
    }

    func load(of name: StoreName) -> UInt64 {
        lives[name]?.record.load(states[name.state]?.load) ?? 0
    }

    /// Whether the entries that are kept aside may include this entry for some store of the target.
    func isKeptAside(_ sequence: SequenceNumber, _ target: Target) -> Bool {
        lives.lives.contains { name, life in
            target.concerns(name) && life.record.baseSequence < sequence
                && life.record.aside.map { sequence <= $0.through } == true
        }
    }

    /// The stores that an entry for a target concerns, ascending.
    func names(concernedBy target: Target) -> [StoreName] {
        if case .store(let name) = target { return lives[name] == nil ? [] : [name] }
        return lives.lives.keys.filter { target.concerns($0) }.sorted()
    }

    /// The skipped entries above a store's snapshot that concern it.
    func skips(of name: StoreName) -> [SequenceNumber] {
        guard let base = lives[name]?.record.baseSequence else { return [] }
        return skips(of: name, behind: base)
    }

    private func skips(of name: StoreName, behind sequence: SequenceNumber) -> [SequenceNumber] {
        skips.entries.lazy.filter { $0.sequence > sequence && $0.target.concerns(name) }
            .map(\.sequence)
    }

    /// What a reader needs that begins with a store earlier than an opener.
    func earlierStart(of name: StoreName) -> EarlierStart? {
        lives[name].map {
            EarlierStart(
                snapshot: $0.record.former, skipped: skips(of: name, behind: $0.record.life))
        }
    }
}

extension StoreDirectory: Equatable {
    /// Compares only what the log says.
    static func == (left: Self, right: Self) -> Bool {
        left.lives.lives == right.lives.lives && left.states == right.states
            && left.skips == right.skips
    }
}

extension StoreDirectory {
    func checkInvariants() throws(BrokenInvariant) {
        try lives.checkInvariants()
        try states.checkInvariants()
        let storeCount = lives.count + beginnings.count
        try hold(
            stores.total == storeCount, "\(storeCount) stores, and \(stores.total) are counted")
        let bytes =
            lives.lives.values.reduce(0) { $0 + $1.record.initialBytes }
            + beginnings.values.reduce(0) { $0 + $1.initial.bytes.count }
        try hold(
            initialBytes.total == bytes,
            "\(bytes) first bytes, and \(initialBytes.total) are counted")
        let named = lives.lives.keys.count { $0.instance != .shared } + states.seenCount
        try hold(names.count == named, "\(named) names, and \(names.count) are counted")
        for (name, life) in lives.lives {
            for incarnation in life.work.hosts.keys {
                try hold(
                    hosting[incarnation]?.stores.contains(name) == true,
                    "\(incarnation) hosts \(name), and the index does not say so")
            }
            for incarnation in life.work.stops.keys {
                try hold(
                    hosting[incarnation]?.stopped.contains(name) == true,
                    "\(name) stopped in \(incarnation), and the index does not say so")
            }
        }
        for incarnation in hosting.incarnations {
            guard let node = hosting[incarnation] else { continue }
            for name in node.stores {
                try hold(
                    lives[name]?.work.hosts[incarnation] != nil,
                    "\(incarnation) does not host \(name)")
            }
            for state in node.states {
                try hold(
                    states[state]?.bridges[incarnation] != nil,
                    "\(incarnation) does not bridge \(state)")
            }
            for name in node.stopped {
                try hold(
                    lives[name]?.work.stops[incarnation] != nil,
                    "\(name) did not stop in \(incarnation)")
            }
            try hold(
                !node.stores.isEmpty || !node.states.isEmpty || !node.stopped.isEmpty,
                "\(incarnation) hosts nothing")
        }
    }
}
