import ConfluxVocabulary

extension LogEvent {
    /// The number of the event in the log.
    public var kind: LogEventKind {
        switch self {
        case .claim: .claim
        case .joined: .joined
        case .left: .left
        case .forgotten: .forgotten
        case .created: .created
        case .dropped: .dropped
        case .upgraded: .upgraded
        case .frozen: .frozen
        case .thawed: .thawed
        case .digestPoint: .digestPoint
        case .skipped: .skipped
        case .visited: .visited
        case .handles: .handles
        case .forked: .forked
        }
    }

    /// The most bytes that the event takes, without the fields of its block.
    var byteCountMax: Int {
        switch self {
        case .created(_, _, let initial): 320 + initial.bytes.count
        case .handles(_, let events): 320 + events.count * (1 + Name.lengthMax)
        default: 320
        }
    }

    /// The tag of the extension that names a key: the one that caused an event, or opened a session.
    static let ownerTag: UInt16 = 1
    /// The tag of the extension that has the digest of a migrated state.
    static let migratedTag: UInt16 = 4

    /// The digest of a migrated state. It is written behind the name of the key.
    var migrated: Digest? {
        if case .upgraded(_, _, _, _, let digest) = self { digest } else { nil }
    }
}

extension LogEvent: WireField {
    init(reading reader: inout FrameReader, _: String) throws(WireError) {
        let at = reader.offset
        let number = try reader.fixed(UInt8.self, "an event's kind")
        switch LogEventKind(rawValue: number) {
        case .claim:
            self = .claim(
                epoch: try reader.read("a claim's epoch"),
                nonce: try reader.read("a claim's nonce"))
        case .joined:
            self = .joined(
                nonce: try reader.read("a process's nonce"),
                name: try reader.read("a node's name"),
                rejoining: try reader.read("an incarnation"),
                isKeyed: try reader.read("whether a session is keyed"))
        case .left: self = .left(try reader.read("an incarnation"))
        case .forgotten: self = .forgotten(try reader.read("an incarnation"))
        case .created:
            self = .created(
                try reader.read(), schemaVersion: try reader.read("a schema version"),
                initial: try reader.read())
        case .dropped: self = .dropped(try reader.read(), life: try reader.life())
        case .upgraded:
            self = .upgraded(
                try reader.read(), life: try reader.life(),
                schemaVersion: try reader.read("a schema version"),
                base: SequenceNumber(try reader.positive("a snapshot's number")),
                digest: try reader.extension(Self.migratedTag, nil, "a digest"))
        case .frozen:
            self = .frozen(
                try reader.read(), life: try reader.life(),
                reason: try reader.read("why a store is frozen"))
        case .thawed: self = .thawed(try reader.read(), life: try reader.life())
        case .digestPoint: self = .digestPoint(try reader.read(), life: try reader.life())
        case .skipped:
            self = .skipped(
                SequenceNumber(try reader.positive("the number of an entry")), try reader.read())
        case .visited: self = .visited(nonce: try reader.read("a process's nonce"))
        case .handles:
            let (state, events): (Name, [Name]) = (
                try reader.read(), try reader.read("the handled events")
            )
            guard !events.isEmpty else { throw .malformed(at: at, expected: "the handled events") }
            self = .handles(state, events: events)
        case .forked: self = .forked(from: try reader.read("a log's id"))
        default: throw .unsupportedKind(number, at: at, expected: "an event")
        }
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(kind.rawValue)
        switch self {
        case .claim(let epoch, let nonce): writer.put(epoch, nonce)
        case .joined(let nonce, let name, let rejoining, let isKeyed):
            writer.put(nonce, name, rejoining, isKeyed)
        case .left(let incarnation), .forgotten(let incarnation): writer.put(incarnation)
        case .created(let store, let schemaVersion, let initial):
            writer.put(store, schemaVersion, initial)
        case .dropped(let store, let life), .thawed(let store, let life),
            .digestPoint(let store, let life):
            writer.put(store, life)
        case .upgraded(let store, let life, let schemaVersion, let base, _):
            writer.put(store, life, schemaVersion, base)
        case .frozen(let store, let life, let reason): writer.put(store, life, reason)
        case .skipped(let sequence, let target): writer.put(sequence, target)
        case .visited(let nonce): writer.put(nonce)
        case .handles(let state, let events): writer.put(state, events)
        case .forked(let log): writer.put(log)
        }
    }
}

extension FrameReader {
    /// The number of a store's `created` entry.
    fileprivate mutating func life() throws(WireError) -> SequenceNumber {
        SequenceNumber(try positive("a store's life"))
    }
}
