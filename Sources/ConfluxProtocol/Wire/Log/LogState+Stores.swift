import ConfluxVocabulary

// The stores' part of a checkpoint: see `LogState+Wire`.

extension LogState {
    /// No log has more bytes. So the sum of two loads never overflows.
    private static let loadMost: UInt64 = 1 << 62

    mutating func readStore(_ reader: inout FrameReader) throws(WireError) {
        let at = reader.offset
        let length = Int(try reader.fixed(UInt32.self, "a store's length"))
        var nested = try reader.nested(length, "a store")
        let name: StoreName = try nested.read()
        let life: SequenceNumber = try nested.read("a life")
        let schemaVersion: UInt32 = try nested.read("a schema version")
        let initialVersion: UInt32 = try nested.read("a schema version")
        var store = StoreRecord(
            life: life, schemaVersion: initialVersion, initial: try nested.read())
        store.schemaVersion = schemaVersion
        store.migratedFrom = try nested.read("a snapshot's number")
        store.own = try nested.read()
        store.globalBase = try nested.number("a load in bytes")
        store.lastPoint = try nested.read("a digest point")
        store.pointLoad = try nested.number("a load in bytes")
        store.freezing = try nested.read("a freeze")
        store.creator = try nested.extension(LogEvent.ownerTag, nil, "a key's name")
        store.migrated = try nested.extension(LogEvent.migratedTag, nil, "a digest")
        try nested.skipExtensions()
        guard life > .zero, life <= last, directory.store(name) == nil,
            schemaVersion >= initialVersion, store.migratedFrom <= last, store.own.stamp >= life,
            store.own.stamp <= last, store.own.byteCount <= Self.loadMost, store.lastPoint >= life,
            store.lastPoint <= last,
            store.freezing.map({ $0.sequence <= last && $0.globalBytes >= store.globalBase })
                ?? true
        else {
            throw .malformed(at: at, expected: "a store of its own, with its first state")
        }
        directory.restore(store, named: name)
    }

    mutating func readLoads(_ reader: inout FrameReader) throws(WireError) {
        let at = reader.offset
        let bytes = try reader.number("the log's length")
        let marks: [LogMarks.Mark] = try reader.list(limit: LogMarks.countMax, "the marks")
        guard let read = LogMarks(marks, byteCount: bytes), marks.last?.last ?? .zero <= last else {
            throw .malformed(at: at, expected: "marks that ascend")
        }
        self.marks = read
        try readGlobals(&reader)
        for _ in 0..<(try reader.count(limit: SkipTable.countMax, "what is skipped")) {
            directory.restore(try reader.read(), by: try reader.read("a key's name"))
        }
    }

    private mutating func readGlobals(_ reader: inout FrameReader) throws(WireError) {
        let at = reader.offset
        for _ in 0..<(try reader.count(limit: Self.countMax, "the states")) {
            let name: Name = try reader.read()
            let load: StoreLoad = try reader.read()
            guard load.stamp > .zero, load.stamp <= last, load.byteCount <= Self.loadMost,
                directory.states[name]?.load == StoreLoad()
            else { throw .malformed(at: at, expected: "a state of its own that was seen") }
            directory.restore(load, version: try reader.read("a schema version"), of: name)
        }
        for (name, life) in directory.lives.lives {
            let store = life.record
            let global = directory.states[name.state]?.load
            guard store.globalBase <= global?.byteCount ?? 0,
                store.freezing?.globalBytes ?? 0 <= global?.byteCount ?? 0,
                store.pointLoad <= store.load(global)
            else { throw .malformed(at: at, expected: "a state that its stores fit") }
        }
    }

    func writeLoads(to writer: inout FrameWriter) {
        writer.number(marks.byteCount)
        writer.put(marks.marks)
        let globals = directory.states.seen.filter { $0.value.load.stamp > .zero }
        writer.put(UInt32(globals.count))
        for (name, state) in globals.sorted(by: { $0.key < $1.key }) {
            writer.put(name, state.load, state.loggedVersion)
        }
        writer.put(UInt32(directory.skips.entries.count))
        for skip in directory.skips.entries { writer.put(skip, directory.skips.owner(of: skip)) }
    }
}

extension StoreRecord {
    func write(_ name: StoreName, to writer: inout FrameWriter) {
        guard case .initial(let initial, let initialVersion) = base else {
            preconditionFailure(
                "a logState holds a snapshot of \(name), which stands beside the log")
        }
        writer.put(name, life, schemaVersion, initialVersion, initial, migratedFrom, own)
        writer.number(globalBase)
        writer.put(lastPoint)
        writer.number(pointLoad)
        writer.put(freezing)
        writer.extension(LogEvent.ownerTag, creator, "a key's name")
        writer.extension(LogEvent.migratedTag, migrated, "a digest")
    }
}

extension StoreRecord.Freezing: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            sequence: try coder.field(value?.sequence, "the number of an entry"),
            reason: try coder.field(value?.reason, "why a store is frozen"),
            globalBytes: try coder.number(value?.globalBytes, "a load in bytes"))
    }
}

extension StoreLoad: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            stamp: try coder.field(value?.stamp, "a stamp"),
            byteCount: try coder.number(value?.byteCount, "a load in bytes"))
    }
}

extension LogMarks.Mark: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            last: try coder.field(value?.last, "a mark"),
            byteCount: try coder.number(value?.byteCount, "a length"),
            timestamp: try coder.field(value?.timestamp, "a timestamp"))
    }
}

extension SkippedEntry: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            sequence: try coder.field(value?.sequence, "the number of an entry"),
            target: try coder.field(value?.target))
    }
}
