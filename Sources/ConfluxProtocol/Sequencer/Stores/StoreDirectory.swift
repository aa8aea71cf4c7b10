import ConfluxVocabulary

/// The stores and states that the sequencer knows. Targets are checked against it before entries
/// are admitted. It also has the work under way for each life.
///
/// The state of a log has a directory, too, which contains only what the log says.
struct StoreDirectory: Sendable {
    /// The lives whose `created` entry is in the log.
    private(set) var lives = LifeTable()
    /// The lives whose `created` entry is not in the log yet, by store. *Invariant*: such an entry
    /// comes after the end of the store's present life, if there is one.
    private(set) var beginnings: [StoreName: StoreBeginning] = [:]
    private(set) var states = StateTable()
    /// Changed only in `SkipTable.swift`, and by ``note(_:by:at:)``.
    var skips = SkipTable()
    /// How many lives there are, including those that are about to begin, and by which keys they were
    /// created. *Use*: to bound them.
    private(set) var stores = Shares<Name>()
    /// The same for the bytes of their first states.
    private(set) var initialBytes = Shares<Name>()
    /// What each live node hosts and bridges. *Invariant*: it matches the lives and states.
    private(set) var hosting = HostingIndex()
    /// The stores whose hosts have changed, since their versions were reviewed (rule 17).
    private(set) var hostsChanged = StoreQueue()
    private(set) var names = KnownNames()

    /// Changes the work under way for a store.
    ///
    /// - Returns: What the change returns; nil if the store has no life.
    @discardableResult
    mutating func change<Result>(
        _ name: StoreName, _ change: (inout StoreWork) -> Result
    ) -> Result? {
        lives.change(name, change)
    }

    /// The same for one life only. If the store's present life is another one, nothing changes.
    @discardableResult
    mutating func change<Result>(
        _ place: SnapshotPlace, _ change: (inout StoreWork) -> Result
    ) -> Result? {
        lives[place.store]?.record.life == place.life ? lives.change(place.store, change) : nil
    }

    // MARK: Lives

    /// A life is about to begin. Its store and first state count from here on, so that many lives
    /// that begin at once stay within the bounds.
    mutating func begin(_ beginning: StoreBeginning, named name: StoreName) {
        beginnings[name] = beginning
        expect(name, beginning.initial, beginning.schemaVersion, by: beginning.creator)
    }

    /// Another node waits for a life to begin.
    mutating func wait(_ opener: Opener, forBeginningOf name: StoreName) {
        beginnings[name]?.wait(opener)
    }

    /// The `created` entry of a life is in the log.
    mutating func created(_ name: StoreName, at sequence: SequenceNumber) -> StoreBeginning? {
        guard let beginning = beginnings.removeValue(forKey: name) else { return nil }
        put(
            StoreRecord(
                life: sequence, schemaVersion: beginning.schemaVersion, initial: beginning.initial,
                creator: beginning.creator),
            named: name)
        return beginning
    }

    /// Inserts a store that no opener waited for, as the log tells of it.
    mutating func insert(_ record: StoreRecord, named name: StoreName) {
        if case .initial(let initial, _) = record.base {
            expect(name, initial, record.schemaVersion, by: record.creator)
        }
        if let former = lives[name]?.record { end(name, life: former.life) }
        put(record, named: name)
    }

    /// Inserts a store from a checkpoint.
    mutating func restore(_ record: StoreRecord, named name: StoreName) {
        insert(record, named: name)
        lives.record(name) { $0.globalBase = record.globalBase }
    }

    private mutating func expect(
        _ name: StoreName, _ initial: EncodedState, _ version: UInt32, by creator: Name?
    ) {
        stores.add(of: creator)
        initialBytes.add(initial.bytes.count, of: creator)
        see(name.state, by: creator)
        states.addStore(of: name.state, version: version)
    }

    private mutating func put(_ record: StoreRecord, named name: StoreName) {
        var record = record
        record.globalBase = states[name.state]?.load.byteCount ?? 0
        lives.insert(record, named: name)
        if name.instance != .shared { names.insert(name.description) }
    }

    /// Ends a life, and all work under way for it. Its state stays seen, since the log has entries
    /// of it.
    mutating func end(_ name: StoreName, life: SequenceNumber) {
        guard let ended = lives[name], ended.record.life == life else { return }
        for incarnation in ended.work.hosts.keys { hosting.remove(name, of: incarnation) }
        for incarnation in ended.work.stops.keys {
            let stopped = hosting[incarnation]?.stopped ?? []
            hosting.stop(stopped.subtracting([name]), of: incarnation)
        }
        stores.remove(of: ended.record.creator)
        initialBytes.remove(ended.record.initialBytes, of: ended.record.creator)
        states.removeStore(of: name.state, version: ended.record.schemaVersion)
        hostsChanged.remove(name)
        lives.remove(name)
        guard name.instance != .shared else { return }
        names.remove(name.description) { last in
            let named = lives.lives.keys.lazy.filter { $0.instance != .shared }.map(\.description)
            let seen = states.seen.lazy.map(\.key.text)
            return [named.filter { $0 > last }.min(), seen.filter { $0 > last }.min()]
                .compactMap { $0 }.min()
        }
    }

    // MARK: Words

    /// The word on a life is in the log.
    ///
    /// - Returns: The word; nil if none was on its way.
    mutating func land(
        _ name: StoreName, life: SequenceNumber, at sequence: SequenceNumber
    ) -> StoreWord? {
        guard lives[name]?.record.life == life,
            let word = lives.change(name, { $0.endWord() }) ?? nil
        else { return nil }
        note(word.kind.event(of: name, life: life), at: sequence)
        return word
    }

    // MARK: Hosts

    /// A live node hosts a store.
    mutating func host(
        _ name: StoreName, as versions: SupportedVersions, by incarnation: Incarnation
    ) {
        let isThere: Void? = lives.change(name) { $0.host(incarnation, as: versions) }
        guard isThere != nil else { return }
        hosting.add(name, of: incarnation)
        hostsChange(of: name)
    }

    /// The hosts of a store have changed, or its version could not be reviewed when they did.
    mutating func hostsChange(of name: StoreName) { hostsChanged.append(name) }

    /// The version of a store is reviewed after its hosts have changed.
    mutating func review(hostsOf name: StoreName) { hostsChanged.remove(name) }

    /// The newest versions of the nodes that host a store of the state.
    func versionsHosted(of state: Name) -> [UInt32] {
        (states[state]?.bridges ?? [:]).filter { node, _ in
            hosting[node]?.stores.contains { $0.state == state } == true
        }.map(\.value.schemaVersion)
    }

    /// A node no longer hosts a store, and no longer waits for it.
    mutating func endHosting(of name: StoreName, by incarnation: Incarnation) {
        beginnings[name]?.remove(openersOf: incarnation)
        change(name) {
            $0.remove(openersOf: incarnation)
            $0.endHosting(by: incarnation)
        }
        hosting.remove(name, of: incarnation)
        hostsChange(of: name)
        noLongerHosts(name.state, incarnation)
    }

    /// A node that hosted stores of a state hosts none of them any more: the versions of others need not wait for it.
    private mutating func noLongerHosts(_ state: Name, _ incarnation: Incarnation) {
        guard hosting[incarnation]?.stores.contains(where: { $0.state == state }) != true else {
            return
        }
        for name in names(concernedBy: .state(state)) { hostsChange(of: name) }
    }

    /// A node that is present again says what it hosts. From now on it hosts these stores and no
    /// others, as far as the lives that it names are present. The votes that it owes for them are
    /// still awaited.
    ///
    /// - Returns: The stores that it hosts.
    mutating func restate(_ hosted: [HostedStore], by incarnation: Incarnation) -> [StoreName] {
        let present = hosted.filter { lives[$0.store]?.record.life == $0.life }
        endHosting(by: incarnation, but: Set(present.map(\.store)))
        for replica in present {
            host(replica.store, as: replica.versions, by: incarnation)
        }
        return present.map(\.store)
    }

    /// A node is no longer present, so it hosts nothing.
    mutating func endHosting(by incarnation: Incarnation) { endHosting(by: incarnation, but: []) }

    private mutating func endHosting(by incarnation: Incarnation, but kept: Set<StoreName>) {
        guard let former = hosting.remove(incarnation) else { return }
        for name in former.stores.subtracting(kept).sorted() {
            change(name) { work in
                work.remove(openersOf: incarnation)
                work.endHosting(by: incarnation)
            }
            hostsChange(of: name)
        }
        for name in former.stopped { change(name) { $0.stop(incarnation, at: nil) } }
        for state in former.states { states.endBridge(state, by: incarnation) }
        for state in Set(former.stores.map(\.state)).sorted() { noLongerHosts(state, incarnation) }
    }

    /// Sets which of a node's replicas are stopped. Its others continue.
    mutating func stop(_ replicas: [StoppedStore], of incarnation: Incarnation) {
        let former = hosting[incarnation]?.stopped ?? []
        var stopped: Set<StoreName> = []
        for replica in replicas where lives[replica.store]?.record.life == replica.life {
            stopped.insert(replica.store)
            change(replica.store) { $0.stop(incarnation, at: replica.sequence) }
        }
        for name in former.subtracting(stopped) {
            change(name) { $0.stop(incarnation, at: nil) }
        }
        hosting.stop(stopped, of: incarnation)
    }

    /// A live node bridges a state.
    mutating func bridge(
        _ bridge: StateBridge, by incarnation: Incarnation, of sharer: Sharer
    ) {
        states.bridge(bridge, by: incarnation, of: sharer)
        hosting.add(bridge.state, of: incarnation)
    }

    mutating func endBridge(_ state: Name, by incarnation: Incarnation) {
        states.endBridge(state, by: incarnation)
        hosting.remove(state, of: incarnation)
    }

    // MARK: States

    /// The log has, or will have, an entry for a target.
    ///
    /// - Parameters:
    ///   - target: The target.
    ///   - owner: The name of the key that caused it; nil if none did.
    mutating func see(_ target: Target, by owner: Name?) {
        if case .state(let name) = target { see(name, by: owner) }
    }

    mutating func see(_ state: Name, by owner: Name?) {
        if states.see(state, by: owner) { names.insert(state.text) }
    }

    /// The names that a person may have meant. If there are many, only some of them.
    var knownNames: String {
        let unseenCount = states.count - states.seenCount
        return names.text(
            with: unseenCount > 0 ? states.unseen.map(\.text) : [], otherCount: unseenCount)
    }

    // MARK: What the log says

    /// The entries of a batch are in the log, with these loads, from a number on.
    mutating func note(_ loads: [TargetLoad], by owner: Name?, from first: SequenceNumber) {
        for load in loads {
            switch load.target {
            case .store(let name):
                lives.record(name) {
                    $0.own.add(load.byteCount, at: first.advanced(by: load.last))
                }
            case .state(let state):
                see(state, by: owner)
                states.add(load, to: state, from: first)
            case .event: break
            }
        }
    }

    /// An event is in the log. An event of another life than the store's present one changes
    /// nothing.
    mutating func note(_ event: LogEvent, by owner: Name? = nil, at sequence: SequenceNumber) {
        switch event {
        case .upgraded(let name, let life, let version, let base, let digest):
            update(name, life: life, at: sequence) { store, _ in
                store.schemaVersion = max(store.schemaVersion, version)
                store.migratedFrom = base
                store.migrated = digest
            }
        case .frozen(let name, let life, let reason):
            update(name, life: life, at: sequence) { store, global in
                store.own.stamp = max(store.own.stamp, global?.stamp ?? .zero)
                store.freezing = StoreRecord.Freezing(
                    sequence: sequence, reason: reason, globalBytes: global?.byteCount ?? 0)
            }
        case .thawed(let name, let life):
            update(name, life: life, at: sequence) { store, global in
                guard let freezing = store.freezing else { return }
                store.globalBase += (global?.byteCount ?? 0) - freezing.globalBytes
                store.freezing = nil
            }
        case .digestPoint(let name, let life):
            guard lives[name]?.record.life == life else { return }
            let load = load(of: name)
            lives.record(name) {
                $0.lastPoint = sequence
                $0.pointLoad = load
            }
        case .dropped(let name, let life): end(name, life: life)
        case .skipped(let skipped, let target):
            skips.note(SkippedEntry(sequence: skipped, target: target), by: owner)
            pass(target, at: sequence)
        case .created(let name, let schemaVersion, let initial):
            insert(
                StoreRecord(
                    life: sequence, schemaVersion: schemaVersion, initial: initial, creator: owner),
                named: name)
        case .handles(let state, let events):
            see(state, by: owner)
            states.handle(events, in: state)
        case .claim, .joined, .visited, .left, .forgotten, .forked: break
        }
    }

    /// An entry without an action concerns stores.
    mutating func pass(_ target: Target, at sequence: SequenceNumber) {
        switch target {
        case .store(let name): lives.record(name) { $0.own.add(0, at: sequence) }
        case .state, .event: for state in target.states { states.pass(state, at: sequence) }
        }
    }

    private mutating func update(
        _ name: StoreName, life: SequenceNumber, at sequence: SequenceNumber,
        _ change: (inout StoreRecord, StoreLoad?) -> Void
    ) {
        guard let former = lives[name]?.record, former.life == life else { return }
        let global = states[name.state]?.load
        lives.record(name) { store in
            change(&store, global)
            store.own.stamp = max(store.own.stamp, sequence)
        }
        guard let version = lives[name]?.record.schemaVersion, version != former.schemaVersion
        else { return }
        states.removeStore(of: name.state, version: former.schemaVersion)
        states.addStore(of: name.state, version: version)
    }

    /// Inserts the load of entries for a whole state from a checkpoint.
    mutating func restore(_ load: StoreLoad, version: UInt32, of state: Name) {
        states.restore(load, version: version, of: state)
    }

    /// Inserts the events that a state handles from a checkpoint.
    mutating func restore(_ handled: HandledEvents) {
        states.handle(handled.events, in: handled.state)
    }

    /// A confirmed snapshot is saved.
    ///
    /// - Returns: Whether openers begin with it from now on.
    mutating func take(_ reference: SnapshotReference, of place: SnapshotPlace) -> Bool {
        guard let store = life(place)?.record, store.takes(reference) else { return false }
        lives.record(place.store) { store in
            if case .saved(let former) = store.base { store.former = former }
            store.base = .saved(reference)
            if let aside = store.aside, aside.through <= reference.sequence { store.aside = nil }
        }
        return true
    }

    /// Entries for a store are kept aside.
    mutating func keep(_ aside: StoreRecord.Aside, of name: StoreName, life: SequenceNumber) {
        guard let store = lives[name]?.record, store.life == life,
            aside.through > store.keptThrough
        else { return }
        lives.record(name) { $0.aside = aside }
    }

    /// Whether so many entries for a whole state were logged that its stores must be examined.
    mutating func isReviewDue(_ state: Name, bytesMin: UInt64) -> Bool {
        states.isReviewDue(state, bytesMin: bytesMin)
    }
}
