import ConfluxVocabulary

// The encoding of a checkpoint. No peer sees it. A sequencer reads checkpoints of this version of the encoding, and
// reads the log instead of any other.
//
//     checkpoint = "CFCP" version log last epoch timestamp claims sessions states stores
//                  log-bytes marks globals skips *extension
//     claims     = u32 *( epoch nonce sequence )
//     sessions   = u32 *( u32 session )          ; each behind its length, ascending
//     session    = incarnation nonce optional-name presence holds-name keyed
//                  last-counter settled u32 *run *extension
//     stores     = u32 *( u32 store-record )     ; each behind its length, ascending
//     store-record = store life version base-version state migrated-from stamp bytes global-base
//                  last-point point-load freezing *extension
//     states     = u32 *( name optional-name )   ; those that the log has an entry of, ascending,
//                                                ; and the keys because of which it has
//
//     freezing   = %x00 / %x01 sequence reason global-bytes
//     marks      = u32 *( sequence bytes timestamp )     ; ascending
//     globals    = u32 *( name sequence bytes version )  ; ascending; the highest schema version
//     skips      = u32 *( sequence target optional-name ); ascending; who had it skipped
//     claim      = sequence store incarnation optional-name       ; an extension; for a lease
//     handled    = name u32 *name                 ; an extension; a state, and the events that it handles
//     timer      = sequence optional-name timer-order timestamp   ; an extension; when it fires next
//
// `presence` is 0 for live, and 1 for left. A session with 2 is of a former program, and is forgotten. The extension 1
// of a session or a store is the name of the key that opened or created it. Version 4 is the first with the keys that stores, states and skips count for.

extension LogState {
    private static let magic: [UInt8] = [0x43, 0x46, 0x43, 0x50]
    private static let version: UInt8 = 4
    /// A timer: an extension for each. A sequencer that does not know timers reads the log instead.
    private static let timerTag: UInt16 = 0x8001
    /// A claim for a lease: an extension for each, ascending.
    private static let claimTag: UInt16 = 0x8002
    /// The events of a state: an extension for each state that handles some, ascending.
    private static let eventsTag: UInt16 = 0x8003
    /// The presence of a session that began with a `visited` entry.
    private static let formerPresence: UInt8 = 2
    /// A checkpoint is no frame, so the remaining bytes alone bound its counts.
    static let countMax = Int(Int32.max)

    /// Encodes the checkpoint. The same state of the log always gives the same bytes.
    package func encoded() -> [UInt8] {
        var writer = FrameWriter()
        writer.raw(Self.magic[...])
        writer.fixed(Self.version)
        writer.put(log, last, lastEpoch, lastTimestamp, claims.claims)
        writer.fixed(UInt32(sessions.count))
        for incarnation in sessions.incarnations {
            guard let session = sessions[incarnation] else { continue }
            writer.measured { session.write(isHolder: sessions.isHolder(session), to: &$0) }
        }
        writer.fixed(UInt32(directory.states.seenCount))
        for (name, state) in directory.states.seen.sorted(by: { $0.key < $1.key }) {
            writer.put(name, state.owner)
        }
        writer.fixed(UInt32(directory.lives.count))
        for (name, life) in directory.lives.lives.sorted(by: { $0.key < $1.key }) {
            writer.measured { life.record.write(name, to: &$0) }
        }
        writeLoads(to: &writer)
        for timer in timers.timers.values {
            writer.extension(Self.timerTag, timer, "a timer")
        }
        for (_, claim) in leases.claims.sorted(by: { $0.key < $1.key }) {
            writer.extension(Self.claimTag, claim, "a claim")
        }
        for (name, state) in directory.states.seen.sorted(by: { $0.key < $1.key })
        where !state.events.isEmpty {
            writer.extension(
                Self.eventsTag, HandledEvents(state: name, events: state.events.sorted()),
                "the handled events")
        }
        return writer.take()
    }

    /// Decodes a checkpoint, and checks that its parts fit together.
    ///
    /// - Parameter checkpoint: The bytes; the stores' states share their storage.
    /// - Throws: ``WireError``.
    package init(checkpoint: Bytes) throws(WireError) {
        var reader = FrameReader(checkpoint, limits: .standard)
        for byte in Self.magic + [Self.version] {
            guard try reader.fixed(UInt8.self, "a checkpoint") == byte else {
                throw .malformed(at: 0, expected: "a checkpoint of version \(Self.version)")
            }
        }
        self.init(log: try reader.read("a log's id"))
        last = SequenceNumber(try reader.positive("a checkpoint's number"))
        lastEpoch = try reader.read("the last commit's epoch")
        lastTimestamp = try reader.read("a timestamp")
        try readClaims(&reader)
        for _ in 0..<(try reader.count(limit: Self.countMax, elementBytesMin: 4, "the sessions")) {
            try readSession(&reader)
        }
        for _ in 0..<(try reader.count(limit: Self.countMax, "the states")) {
            let name: Name = try reader.read()
            directory.see(name, by: try reader.read("a key's name"))
        }
        for _ in 0..<(try reader.count(limit: Self.countMax, elementBytesMin: 4, "the stores")) {
            try readStore(&reader)
        }
        try readLoads(&reader)
        let at = reader.offset
        while let (tag, content) = try reader.nextExtension(
            knowing: Self.timerTag, Self.claimTag, Self.eventsTag)
        {
            var content = content
            switch tag {
            case Self.timerTag:
                let timer: TimerTable.Timer = try content.read()
                guard timer.number <= last, timers.restore(timer) else {
                    throw .malformed(at: at, expected: "timers, each once")
                }
            case Self.claimTag:
                let claim: LeaseTable.Claim = try content.read()
                guard claim.number <= last, leases.restore(claim) else {
                    throw .malformed(at: at, expected: "claims, each once")
                }
            case Self.eventsTag:
                let handled: HandledEvents = try content.read()
                guard directory.states[handled.state]?.events.isEmpty == true else {
                    throw .malformed(at: at, expected: "events of states that were seen, each once")
                }
                directory.restore(handled)
            default: break
            }
        }
    }

    private mutating func readClaims(_ reader: inout FrameReader) throws(WireError) {
        let at = reader.offset
        for claim in try reader.list(limit: ClaimTable.countMax, "the claims") as [ClaimTable.Claim]
        {
            let former = claims.claims.last
            guard claim.epoch > former?.epoch ?? .none, claim.first > former?.first ?? .zero,
                claim.epoch <= lastEpoch, claim.first <= last
            else { throw .malformed(at: at, expected: "claims, each behind the one before it") }
            claims.remember(claim)
        }
    }

    private mutating func readSession(_ reader: inout FrameReader) throws(WireError) {
        let at = reader.offset
        let length = Int(try reader.fixed(UInt32.self, "a session's length"))
        var nested = try reader.nested(length, "a session")
        let incarnation: Incarnation = try nested.read("an incarnation")
        let nonce: Nonce = try nested.read("a process's nonce")
        let name: Name? = try nested.read("a node's name")
        let code = try nested.fixed(UInt8.self, "a session's presence")
        guard code != Self.formerPresence else { return }
        guard let presence = Session.Presence(rawValue: code) else {
            throw .malformed(at: at, expected: "a session's presence")
        }
        let isHolder: Bool = try nested.read("whether the session holds its name")
        let isKeyed: Bool = try nested.read("whether the session is keyed")
        let lastCounter = try nested.number("the last counter")
        let settled = try nested.number("the settled counter")
        let runs: [Receipts.Run] = try nested.list(limit: Self.countMax, "the outcomes")
        guard runs.allSatisfy({ $0.firstSequence.rawValue + UInt64($0.count) - 1 <= last.rawValue })
        else { throw .malformed(at: at, expected: "a session whose outcomes are in the log") }
        let owner: Name? = try nested.extension(LogEvent.ownerTag, nil, "a key's name")
        try nested.skipExtensions()
        var session = Session(
            incarnation: incarnation, nonce: nonce, name: name, owner: owner, isKeyed: isKeyed,
            presence: presence, quietSince: .zero)
        guard incarnation != .none, incarnation.rawValue <= last.rawValue,
            !sessions.contains(incarnation, nonce),
            let ledger = OutcomeLedger(lastCounter: lastCounter, settled: settled, runs: runs),
            name == nil || presence == .left || isHolder
        else { throw .malformed(at: at, expected: "a session that fits the others") }
        session.ledger = ledger
        guard sessions.restore(session, isHolder: isHolder) else {
            throw .malformed(at: at, expected: "a session whose name no other one holds")
        }
    }
}

/// The events that a state handles.
struct HandledEvents {
    var state: Name
    var events: [Name]
}

extension HandledEvents: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            state: try coder.field(value?.state),
            events: try coder.field(value?.events, "the handled events"))
    }
}

extension Session {
    fileprivate func write(isHolder: Bool, to writer: inout FrameWriter) {
        writer.put(incarnation, nonce, name, presence, isHolder, isKeyed)
        writer.number(ledger.lastCounter)
        writer.number(ledger.settled)
        writer.fixed(UInt32(ledger.recordCount))
        for record in ledger.openRecords {
            guard case .committed(let sequence, let epoch, let timestamp) = record.status else {
                preconditionFailure("a logState has an outcome that is not in the log: \(record)")
            }
            Receipts.Run(
                firstCounter: record.first, count: record.count, firstSequence: sequence,
                epoch: epoch, timestamp: timestamp
            ).write(to: &writer)
        }
        writer.extension(LogEvent.ownerTag, owner, "a key's name")
    }
}

extension Session.Presence: WireAlternative {}

extension ClaimTable.Claim: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            epoch: try coder.field(value?.epoch, "a claim's epoch"),
            nonce: try coder.field(value?.nonce, "a claim's nonce"),
            first: try coder.field(value?.first, "a claim's number"))
    }
}

extension FrameWriter {
    /// Writes something behind its length.
    mutating func measured(_ body: (inout FrameWriter) -> Void) {
        let offset = bytes.count
        fixed(UInt32(0))
        body(&self)
        patch(UInt32(bytes.count - offset - 4), at: offset)
    }
}
