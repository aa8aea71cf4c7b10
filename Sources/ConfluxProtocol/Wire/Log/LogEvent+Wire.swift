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
        }
    }

    /// Reads an event, without the extensions that fill the rest of its block.
    init(reading reader: inout FrameReader) throws(WireError) {
        let at = reader.offset
        let number = try reader.fixed(UInt8.self, "an event's kind")
        switch LogEventKind(rawValue: number) {
        case .claim:
            let epoch = try reader.epoch("a claim's epoch")
            self = .claim(epoch: epoch, nonce: try reader.identifier("a claim's nonce"))
        case .joined:
            let nonce = try reader.identifier("a process's nonce")
            let name = try reader.optional(Name.self, "a node's name")
            let rejoining = try reader.incarnation("an incarnation")
            self = .joined(
                nonce: nonce, name: name, rejoining: rejoining,
                isKeyed: try reader.flag("whether a session is keyed"))
        case .left:
            self = .left(try reader.incarnation("an incarnation"))
        case .forgotten:
            self = .forgotten(try reader.incarnation("an incarnation"))
        case .created:
            let store = try StoreName(reading: &reader)
            let schemaVersion = try reader.fixed(UInt32.self, "a schema version")
            let initial = try EncodedState(reading: &reader)
            self = .created(store, schemaVersion: schemaVersion, initial: initial)
        case .dropped:
            let store = try StoreName(reading: &reader)
            self = .dropped(store, life: try reader.life())
        case .upgraded:
            let store = try StoreName(reading: &reader)
            let life = try reader.life()
            self = .upgraded(
                store, life: life,
                schemaVersion: try reader.fixed(UInt32.self, "a schema version"),
                base: SequenceNumber(try reader.positive("a snapshot's number")),
                digest: nil)
        case .frozen:
            let store = try StoreName(reading: &reader)
            let life = try reader.life()
            self = .frozen(
                store, life: life,
                reason: try reader.alternative(FreezeReason.self, "why a store is frozen"))
        case .thawed:
            let store = try StoreName(reading: &reader)
            self = .thawed(store, life: try reader.life())
        case .digestPoint:
            let store = try StoreName(reading: &reader)
            self = .digestPoint(store, life: try reader.life())
        case .skipped:
            let sequence = SequenceNumber(try reader.positive("the number of an entry"))
            self = .skipped(sequence, try Target(reading: &reader))
        case .visited:
            self = .visited(nonce: try reader.identifier("a process's nonce"))
        default:
            throw .unsupportedKind(number, at: at, expected: "an event")
        }
    }

    func write(to writer: inout FrameWriter) {
        writer.code(kind)
        switch self {
        case .claim(let epoch, let nonce):
            writer.number(epoch)
            writer.identifier(nonce)
        case .joined(let nonce, let name, let rejoining, let isKeyed):
            writer.identifier(nonce)
            writer.optional(name)
            writer.number(rejoining)
            writer.flag(isKeyed)
        case .left(let incarnation), .forgotten(let incarnation):
            writer.number(incarnation)
        case .created(let store, let schemaVersion, let initial):
            store.write(to: &writer)
            writer.fixed(schemaVersion)
            initial.write(to: &writer)
        case .dropped(let store, let life), .thawed(let store, let life),
            .digestPoint(let store, let life):
            store.write(to: &writer)
            writer.number(life)
        case .upgraded(let store, let life, let schemaVersion, let base, _):
            store.write(to: &writer)
            writer.number(life)
            writer.fixed(schemaVersion)
            writer.number(base)
        case .frozen(let store, let life, let reason):
            store.write(to: &writer)
            writer.number(life)
            writer.code(reason)
        case .skipped(let sequence, let target):
            writer.number(sequence)
            target.write(to: &writer)
        case .visited(let nonce): writer.identifier(nonce)
        }
    }

    /// The most bytes that the event takes, without the fields of its block.
    var byteCountMax: Int {
        guard case .created(_, _, let initial) = self else { return 320 }
        return 320 + initial.bytes.count
    }
}

/// The tag of the extension that names a key: the one that caused an event, or opened a session.
private let ownerTag: UInt16 = 1
/// The tag of the extension that has the digest of a migrated state.
private let migratedTag: UInt16 = 4

/// What extensions say of an event, or of a store or session of a checkpoint.
struct EventExtensions {
    /// The name of the key that caused it; nil if none did.
    var owner: Name?
    /// The digest of the migrated state; nil if there is none.
    var migrated: Digest?
}

extension LogEvent {
    /// Adds what the extensions behind the event say of it.
    mutating func add(_ extensions: EventExtensions) {
        guard case .upgraded(let store, let life, let version, let base, _) = self else { return }
        self = .upgraded(
            store, life: life, schemaVersion: version, base: base, digest: extensions.migrated)
    }

    /// What the extensions behind the event say of it, besides its owner.
    var migrated: Digest? {
        if case .upgraded(_, _, _, _, let digest) = self { digest } else { nil }
    }
}

extension FrameWriter {
    /// Writes the extensions behind an event, or behind a store or session of a checkpoint.
    mutating func extensions(owner: Name?, migrated: Digest? = nil) {
        if let owner {
            fixed(ownerTag)
            measured { owner.write(to: &$0) }
        }
        if let migrated {
            fixed(migratedTag)
            measured { migrated.write(to: &$0) }
        }
    }
}

extension FrameReader {
    /// Reads the extensions that fill the rest.
    mutating func extensions() throws(WireError) -> EventExtensions {
        var extensions = EventExtensions()
        while let (tag, body) = try nextExtension() {
            var body = body
            switch tag {
            case ownerTag: extensions.owner = try Name(reading: &body)
            case migratedTag: extensions.migrated = try Digest(reading: &body)
            default: break
            }
        }
        return extensions
    }

    /// The number of a store's `created` entry.
    fileprivate mutating func life() throws(WireError) -> SequenceNumber {
        SequenceNumber(try positive("a store's life"))
    }
}
