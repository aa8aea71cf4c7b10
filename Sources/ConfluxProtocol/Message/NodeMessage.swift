import ConfluxVocabulary

/// A message from a node to the sequencer.
public enum NodeMessage: Sendable, Equatable {
    /// Begins a session, or takes it up again. The first message of every connection.
    case hello(Hello)
    /// Hosts a store, or bridges a state.
    case open(Open)
    /// Ends hosting.
    case close(Close)
    /// Ends a life of a store, in every process (rule 16).
    case drop(Drop)
    /// Consecutive actions of this node.
    case submit(Batch)
    /// Asks for commits that the feed did not bring.
    case fetch(Fetch)
    /// How far this node has applied the log. It is also a sign of life.
    case progress(Progress)
    /// Asks the sequencer, or other nodes through it.
    case question(Question)
    /// Answers a question that the sequencer asked or forwarded.
    case answer(Answer)
    /// Asks up to which number this node must apply the log to have read the latest (rule 29).
    case barrier(Barrier)
    /// Asks for a part of a snapshot that the sequencer keeps.
    case load(Load)
    /// The vote of this node's replica at a digest point, or where its state differs from another.
    case digest(DigestReport)
    /// A part of this node's encoding at a digest point.
    case snapshot(SnapshotChunk)
    /// Asks that an entry have no effect, so that replicas that can't apply it continue behind it.
    case skip(Skip)
    /// Freezes a store, or thaws it.
    case freeze(Freeze)
    /// Asks that a store's schema version rise.
    case upgrade(Upgrade)
    /// Answers the request to migrate a snapshot.
    case migrated(Migrated)
    /// The node is about to leave.
    case leaving(Leaving)
    /// The node leaves.
    case bye(Bye)
}

/// The first message of every connection (rules 2, 8, 10 and 11).
public struct Hello: Sendable, Equatable {
    /// The number of this hello in its process: from 1, ascending. Each answer repeats it. A hello
    /// without an answer is sent again under the same number, as long as its content is the same.
    public var request: UInt64
    /// The random number of this process, which keeps it until its session is forgotten. If there
    /// is a session key, the key gives the nonce instead (rule 11): see ``SessionKey``.
    public var nonce: Nonce
    /// The node's unique name; nil for a process that needs none, like a single dispatch.
    public var name: Name?
    /// What the connection is for. An observer gets no session and makes no entries.
    public var role: Role
    /// If the nonce comes from a session key, a random number that tells apart the processes with
    /// that key; otherwise nil. The session of such a nonce is *keyed*: it outlives a bye.
    public var process: Nonce?
    /// The session to take up again, if there was one.
    public var session: SessionToken?
    /// The highest number that the node knows to be in the log, because it applied it or has a
    /// receipt for it, for example; nil if there is none.
    public var history: HistoryMark?
    /// The stores that this node hosts. Hosting makes no entry, so each hello restates it.
    public var hosted: [HostedStore]
    /// The states that this node bridges.
    public var bridged: [StateBridge]

    /// The owner of the connection's key. No peer sends it: the sequencer fills it in.
    var owner: SessionOwner?

    /// What a connection is for.
    public enum Role: UInt8, Sendable, CaseIterable {
        /// May dispatch and host. A `joined` entry begins its session.
        case member = 0
        /// Only reads: it has no session and makes no entries.
        case observer = 1
    }

    /// Makes a hello.
    public init(
        request: UInt64, nonce: Nonce, name: Name?, role: Role, process: Nonce? = nil,
        session: SessionToken? = nil, history: HistoryMark? = nil, hosted: [HostedStore] = [],
        bridged: [StateBridge] = []
    ) {
        self.request = request
        self.nonce = nonce
        self.name = name
        self.role = role
        self.process = process
        self.session = session
        self.history = history
        self.hosted = hosted
        self.bridged = bridged
    }
}

/// Identifies a session, together with the nonce of its hello (rule 8).
public struct SessionToken: Sendable, Hashable {
    /// The log in which the session lives.
    public var log: LogID
    /// The session's incarnation.
    public var incarnation: Incarnation
}

/// A point in the history of a log. By it a sequencer notices that the log lost its end (rule 2).
public struct HistoryMark: Sendable, Hashable {
    /// The log of that history.
    public var log: LogID
    /// The highest number that a node knows to be in the log, because it applied it, for example.
    public var sequence: SequenceNumber
    /// The term in which the log had that number: the node's present one, or the term that
    /// committed the entry, if that is later.
    public var epoch: Epoch
    /// The nonce of that term's claim; `Identifier.none` if the node never saw it.
    public var claim: Nonce
}

/// A node's bridge to a state.
public struct StateBridge: Sendable, Hashable {
    /// The state.
    public var state: Name
    /// The schema version of the state in the node.
    public var schemaVersion: UInt32
    /// The shapes of the state's actions, as JSON; nil if the node does not send them.
    public var shapes: Bytes?

    /// Makes a bridge.
    public init(state: Name, schemaVersion: UInt32, shapes: Bytes? = nil) {
        self.state = state
        self.schemaVersion = schemaVersion
        self.shapes = shapes
    }
}

/// A store that a node hosts.
public struct HostedStore: Sendable, Hashable {
    /// The store.
    public var store: StoreName
    /// The life that is hosted: the number of its `created` entry.
    public var life: SequenceNumber
    /// The schema versions as which the node can host it.
    public var versions: SupportedVersions
}

/// What an `open` or a `close` is about.
public enum HostingSubject: Sendable, Hashable {
    /// A replicated store.
    case store(StoreName)
    /// A bridged state.
    case state(Name)

    /// The target of entries for it.
    var target: Target {
        switch self {
        case .store(let store): .store(store)
        case .state(let state): .state(state)
        }
    }
}

/// Hosts a store, or bridges a state. Idempotent (rule 16).
public struct Open: Sendable, Equatable {
    /// The node's number for this request, repeated in `opened`.
    public var request: UInt64
    /// The store or the state.
    public var subject: HostingSubject
    /// The schema versions as which the node can host the store, or bridge the state.
    public var versions: SupportedVersions
    /// The events that the state handles.
    public var events: [Name]
    /// The opener's state, as its oldest version has it. If there is no such store, it becomes the store's first
    /// state, and that version the store's.
    public var initial: EncodedState
    /// The shapes of a bridged state's actions, as JSON; nil if the node does not send them.
    public var shapes: Bytes?

    /// Makes a request.
    public init(
        request: UInt64, subject: HostingSubject, versions: SupportedVersions, events: [Name],
        initial: EncodedState, shapes: Bytes? = nil
    ) {
        self.shapes = shapes
        self.request = request
        self.subject = subject
        self.versions = versions
        self.events = events
        self.initial = initial
    }
}

/// The encoded state of a store.
public struct EncodedState: Sendable, Equatable {
    /// How it is encoded.
    public var coding: PayloadCoding
    /// The canonical encoding.
    public var bytes: Bytes

    /// Makes an encoded state.
    public init(coding: PayloadCoding, bytes: Bytes) {
        self.coding = coding
        self.bytes = bytes
    }

    /// No state: a bridged state is opened with it.
    public static let none = EncodedState(coding: .json, bytes: [])
}

/// Ends hosting.
public struct Close: Sendable, Equatable {
    /// The store or the state.
    public var subject: HostingSubject
}

/// Asks for commits (rule 5).
public struct Fetch: Sendable, Equatable {
    /// The node's number for this request, repeated in `entries`.
    public var request: UInt64
    /// The first number that is wanted. The commit that contains it is sent whole.
    public var from: SequenceNumber
    /// The most bytes of commits that the answer may carry. It carries at least one commit, of any
    /// size.
    public var limitBytes: UInt32
    /// The delivery tag of the newest answer that was read on this connection; 0 if there is none.
    public var acknowledged: UInt64

    /// Makes a request.
    public init(
        request: UInt64, from: SequenceNumber, limitBytes: UInt32, acknowledged: UInt64 = 0
    ) {
        self.request = request
        self.from = from
        self.limitBytes = limitBytes
        self.acknowledged = acknowledged
    }
}

/// How far a node has applied the log. It is sent as the node advances, and as a sign of life.
public struct Progress: Sendable, Equatable {
    /// Every attached replica of the node has applied everything up to this number. Replicas that
    /// catch up, or that stopped, don't count.
    public var applied: SequenceNumber
    /// The counter up to which the node has every outcome (rule 9).
    public var settled: UInt64
    /// The replicas that stopped (rules 17 and 23): of stores that the node hosts, and of those that it could not open.
    public var stopped: [StoppedStore] = []
}

/// A replica that stopped.
public struct StoppedStore: Sendable, Hashable {
    /// The store.
    public var store: StoreName
    /// Its life.
    public var life: SequenceNumber
    /// The number of the entry that it did not apply; the life's number if it has no state at all.
    public var sequence: SequenceNumber

    /// Makes a stopped store.
    public init(store: StoreName, life: SequenceNumber, sequence: SequenceNumber) {
        self.store = store
        self.life = life
        self.sequence = sequence
    }
}

/// Ends a life of a store, wherever it is hosted (rule 16). It may be repeated: a life that is over
/// stays over, and no other life is affected.
public struct Drop: Sendable, Hashable {
    /// The node's number for this request, repeated in the answer.
    public var request: UInt64
    /// The store.
    public var store: StoreName
    /// The number of its `created` entry.
    public var life: SequenceNumber

    /// Makes a request.
    public init(request: UInt64, store: StoreName, life: SequenceNumber) {
        self.request = request
        self.store = store
        self.life = life
    }
}

/// Asks that an entry have no effect on what it concerns (rule 23).
public struct Skip: Sendable, Hashable {
    /// The node's number for this request, repeated in the answer.
    public var request: UInt64
    /// The number of the entry.
    public var sequence: SequenceNumber
    /// What the entry concerns.
    public var target: Target

    /// Makes a request.
    public init(request: UInt64, sequence: SequenceNumber, target: Target) {
        self.request = request
        self.sequence = sequence
        self.target = target
    }
}

/// Freezes or thaws a store (rule 21). It may be repeated.
public struct Freeze: Sendable, Hashable {
    /// The node's number for this request, repeated in the answer.
    public var request: UInt64
    /// The store.
    public var store: StoreName
    /// The number of its `created` entry.
    public var life: SequenceNumber
    /// Whether to freeze the store; false thaws it.
    public var isFrozen: Bool

    /// Makes a request.
    public init(request: UInt64, store: StoreName, life: SequenceNumber, isFrozen: Bool) {
        self.request = request
        self.store = store
        self.life = life
        self.isFrozen = isFrozen
    }
}

/// Asks for a number. Whoever has applied everything up to that number has seen every action whose
/// receipt was given before the question (rule 29).
public struct Barrier: Sendable, Hashable {
    /// The node's number for this request, repeated in the answer.
    public var request: UInt64
}
