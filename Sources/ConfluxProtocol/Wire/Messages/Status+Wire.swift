extension SequencerStatus: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            log: try coder.field(value?.log, "a log's id"),
            epoch: try coder.field(value?.epoch, "an epoch"),
            last: try coder.field(value?.last, "the last number"),
            floor: try coder.field(value?.floor, "the floor"),
            checkpoint: try coder.field(value?.checkpoint, "the newest checkpoint"),
            sessions: try coder.field(value?.sessions, "the sessions"),
            stores: try coder.field(value?.stores, "the stores"),
            shapes: try coder.extensions(Frame.shapesTag, value?.shapes ?? []),
            health: try coder.extension(Frame.healthTag, value?.health))
    }
}

extension SequencerHealth: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            usedBytes: try coder.field(value?.usedBytes, "the used bytes"),
            limitBytes: try coder.field(value?.limitBytes, "the log's bound"),
            freeBytes: try coder.optional(value?.freeBytes, "the free bytes"),
            held: try coder.optional(value?.held, "what keeps the log full"),
            isSlowed: try coder.field(value?.isSlowed, "whether admission is slowed"),
            isClockBehind: try coder.field(value?.isClockBehind, "whether the clock is behind"),
            bounds: try coder.field(value?.bounds, "the bounds"))
    }
}

extension Bound: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            try coder.field(value?.name, "a bound's name"),
            Int(try coder.number(value.map { UInt64($0.level) }, "a bound's level")),
            of: Int(try coder.number(value.map { UInt64($0.most) }, "a bound's limit")))
    }
}

extension SessionStatus: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            incarnation: try coder.field(value?.incarnation, "an incarnation"),
            name: try coder.optional(value?.name, "a node's name"),
            owner: try coder.optional(value?.owner, "a key's name"),
            isLive: try coder.field(value?.isLive, "whether the node is present"),
            applied: try coder.field(value?.applied, "the applied number"),
            lastCounter: try coder.number(value?.lastCounter, "the last counter"),
            hosted: try coder.field(value?.hosted, "the hosted stores"),
            bridged: try coder.field(value?.bridged, "the bridged states"))
    }
}

extension StoreStatus: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            store: try coder.field(value?.store),
            life: try coder.field(value?.life, "a life"),
            schemaVersion: try coder.field(value?.schemaVersion, "a schema version"),
            hosts: try coder.field(value?.hosts, "how many hosts"),
            snapshot: try coder.field(value?.snapshot, "a snapshot's number"),
            isFrozen: try coder.field(value?.isFrozen, "whether the store is frozen"),
            divergence: try coder.optional(value?.divergence, "a divergence"),
            stopped: try coder.field(value?.stopped, "the stopped replicas"))
    }
}

extension StoppedReplica: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            node: try coder.field(value?.node, "an incarnation"),
            sequence: try coder.field(value?.sequence, "the entry before which it stopped"))
    }
}

extension DivergenceStatus: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            lastEqual: try coder.field(value?.lastEqual, "the last equal digest point"),
            firstUnequal: try coder.field(value?.firstUnequal, "the first unequal digest point"),
            nodes: try coder.field(value?.nodes, "the nodes"),
            isMajority: try coder.field(value?.isMajority, "whether there is a majority"),
            path: try coder.optional(value?.path, "a key path"))
    }
}

extension SequencerPlace: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            address: try coder.field(value?.address, "a sequencer's address"),
            isServing: try coder.field(value?.isServing, "whether a sequencer serves"),
            last: try coder.field(value?.last, "the last number of a sequencer"))
    }
}
