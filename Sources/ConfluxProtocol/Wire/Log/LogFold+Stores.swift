import ConfluxVocabulary

// The stores' part of a checkpoint: see `LogFold+Wire`.

extension LogFold {
    /// No log has more bytes. So the sum of two loads never overflows.
    private static let loadMost: UInt64 = 1 << 62

    mutating func readStore(_ reader: inout FrameReader) throws(WireError) {
        let at = reader.offset
        let length = Int(try reader.fixed(UInt32.self, "a store's length"))
        var nested = try reader.nested(length, "a store")
        let name = try StoreName(reading: &nested)
        let life = try nested.sequence("a life")
        let schemaVersion = try nested.fixed(UInt32.self, "a schema version")
        let initialVersion = try nested.fixed(UInt32.self, "a schema version")
        let initial = try EncodedState(reading: &nested)
        var store = StoreRecord(life: life, schemaVersion: initialVersion, initial: initial)
        store.schemaVersion = schemaVersion
        store.migratedFrom = try nested.sequence("a snapshot's number")
        store.own.stamp = try nested.sequence("a stamp")
        store.own.byteCount = try nested.number("a load in bytes")
        store.globalBase = try nested.number("a load in bytes")
        store.lastPoint = try nested.sequence("a digest point")
        store.pointLoad = try nested.number("a load in bytes")
        if try nested.flag("whether a store is frozen") {
            let sequence = try nested.sequence("the number of an entry")
            let reason = try nested.code(FreezeReason.self, "why a store is frozen")
            store.freezing = StoreRecord.Freezing(
                sequence: sequence, reason: reason,
                globalBytes: try nested.number("a load in bytes"))
        }
        let extensions = try nested.extensions()
        store.creator = extensions.owner
        store.migrated = extensions.migrated
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
        let count = try reader.count(
            limit: LogMarks.countMax, elementBytesMin: 8 + 8 + 8, "the marks")
        var marks: [LogMarks.Mark] = []
        for _ in 0..<count {
            let last = try reader.sequence("a mark")
            let bytes = try reader.number("a length")
            marks.append(
                LogMarks.Mark(last: last, byteCount: bytes, timestamp: try reader.timestamp()))
        }
        guard let read = LogMarks(marks, byteCount: bytes), marks.last?.last ?? .zero <= last else {
            throw .malformed(at: at, expected: "marks that ascend")
        }
        self.marks = read
        try readGlobals(&reader)
        let skips = try reader.count(
            limit: SkipTable.countMax, elementBytesMin: 8 + Target.bytesMin + 1,
            "what is skipped")
        for _ in 0..<skips {
            let sequence = try reader.sequence("the number of an entry")
            let target = try Target(reading: &reader)
            let owner = try reader.optional(Name.self, "a key's name")
            directory.restore(SkippedEntry(sequence: sequence, target: target), by: owner)
        }
    }

    private mutating func readGlobals(_ reader: inout FrameReader) throws(WireError) {
        let at = reader.offset
        let count = try reader.count(
            limit: Self.countMax, elementBytesMin: Name.bytesMin + 8 + 8 + 4, "the states")
        for _ in 0..<count {
            let name = try Name(reading: &reader)
            let stamp = try reader.sequence("a stamp")
            let bytes = try reader.number("a load in bytes")
            let version = try reader.fixed(UInt32.self, "a schema version")
            guard stamp > .zero, stamp <= last, bytes <= Self.loadMost,
                directory.states[name]?.load == StoreLoad()
            else { throw .malformed(at: at, expected: "a state of its own that was seen") }
            directory.restore(
                StoreLoad(stamp: stamp, byteCount: bytes), version: version, of: name)
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
        writer.fixed(UInt32(marks.marks.count))
        for mark in marks.marks {
            writer.number(mark.last)
            writer.number(mark.byteCount)
            writer.timestamp(mark.timestamp)
        }
        let globals = directory.states.seen.filter { $0.value.load.stamp > .zero }
        writer.fixed(UInt32(globals.count))
        for (name, state) in globals.sorted(by: { $0.key < $1.key }) {
            name.write(to: &writer)
            writer.number(state.load.stamp)
            writer.number(state.load.byteCount)
            writer.fixed(state.loggedVersion)
        }
        writer.fixed(UInt32(directory.skips.entries.count))
        for skip in directory.skips.entries {
            writer.number(skip.sequence)
            skip.target.write(to: &writer)
            writer.optional(directory.skips.owner(of: skip))
        }
    }
}

extension StoreRecord {
    func write(_ name: StoreName, to writer: inout FrameWriter) {
        guard case .initial(let initial, let initialVersion) = base else {
            preconditionFailure("a fold holds a snapshot of \(name), which stands beside the log")
        }
        name.write(to: &writer)
        writer.number(life)
        writer.fixed(schemaVersion)
        writer.fixed(initialVersion)
        initial.write(to: &writer)
        writer.number(migratedFrom)
        writer.number(own.stamp)
        writer.number(own.byteCount)
        writer.number(globalBase)
        writer.number(lastPoint)
        writer.number(pointLoad)
        writer.flag(freezing != nil)
        if let freezing {
            writer.number(freezing.sequence)
            writer.code(freezing.reason)
            writer.number(freezing.globalBytes)
        }
        writer.extensions(owner: creator, migrated: migrated)
    }
}
