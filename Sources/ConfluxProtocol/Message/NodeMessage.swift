import ConfluxVocabulary

/// What a node says to the sequencer.
public enum NodeMessage: Sendable, Equatable {
    /// Begins, or takes up again, a session. The first message of every connection.
    case hello(Hello)
    /// Hosts a store, or bridges a state.
    case open(Open)
    /// Ends hosting.
    case close(Close)
    /// Ends a life of a store, in every process (rule 16).
    case drop(Drop)
    /// Consecutive actions of this node.
    case submit(Batch)
    /// The same of a node that dispatches without joining.
    case visit(Visit)
    /// Asks for commits that the feed did not bring.
    case fetch(Fetch)
    /// How far this node is; also its sign of life.
    case progress(Progress)
    /// Asks the sequencer, or other nodes through it.
    case question(Question)
    /// Answers a question that the sequencer asked or forwarded.
    case answer(Answer)
    /// Asks up to which number this node must have applied to have read the latest (rule 29).
    case barrier(Barrier)
    /// Asks for a part of a snapshot that the sequencer keeps.
    case load(Load)
    /// What this node's replica is at a digest point, or where it differs from another.
    case digest(DigestReport)
    /// A part of this node's encoding at a digest point.
    case snapshot(SnapshotChunk)
    /// Has an entry be without effect, so that replicas that can't apply it continue behind it.
    case skip(Skip)
    /// Freezes a store, or thaws it.
    case freeze(Freeze)
    /// The node leaves.
    case bye(Bye)
}

/// The first message of every connection (rules 2, 8, 10 and 11).
public struct Hello: Sendable, Equatable {
    /// The process's number for this hello, from 1, ascending: each answer repeats it. A hello that
    /// has no answer is said again under the same number, as long as it says the same.
    public var request: UInt64
    /// The random number of this process, which keeps it until its session is forgotten; or what
    /// its key gives (rule 11): see ``SessionKey``.
    public var nonce: Nonce
    /// The node's unique name; nil for a process that needs none, as a single dispatch does.
    public var name: Name?
    /// Whether this connection gets a session. Who only observes makes no entries.
    public var role: Role
    /// Where the nonce comes from a key: the random number by which processes with that key are
    /// told apart. Its session is *keyed*: it outlives a bye. nil if the nonce is random.
    public var process: Nonce?
    /// The session to take up again, if there was one.
    public var session: SessionToken?
    /// The highest number that was applied or receipted, if any.
    public var history: HistoryMark?
    /// The stores that this node hosts: hosting is no entry, so each hello restates it.
    public var hosted: [HostedStore]
    /// The states that this node bridges.
    public var bridged: [StateBridge]

    /// The key that its connection proves. No peer says it: the sequencer puts it in.
    var owner: SessionOwner?

    /// What a connection is for.
    public enum Role: UInt8, Sendable, CaseIterable {
        /// May dispatch and host: gets a session by a `joined` entry.
        case member = 0
        /// Only reads: has no session, makes no entry.
        case observer = 1
        /// Dispatches without joining, and reads: its first ``Visit`` makes its session.
        case visitor = 2
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

/// Names a session together with the nonce of its hello (rule 8).
public struct SessionToken: Sendable, Hashable {
    /// The log in which the session lives.
    public var log: LogID
    /// The session's incarnation.
    public var incarnation: Incarnation

    /// Makes a token.
    public init(log: LogID, incarnation: Incarnation) {
        self.log = log
        self.incarnation = incarnation
    }
}

/// A point of a history, by which a lost tail is noticed (rule 2).
public struct HistoryMark: Sendable, Hashable {
    /// The log of that history.
    public var log: LogID
    /// The highest number that a node applied or has a receipt for.
    public var sequence: SequenceNumber
    /// The tenure in which that entry was committed.
    public var epoch: Epoch
    /// The nonce of that tenure's claim; `Identifier.none` when the node never saw it.
    public var claim: Nonce

    /// Makes a mark.
    public init(log: LogID, sequence: SequenceNumber, epoch: Epoch, claim: Nonce) {
        self.log = log
        self.sequence = sequence
        self.epoch = epoch
        self.claim = claim
    }
}

/// A node's bridge to a state.
public struct StateBridge: Sendable, Hashable {
    /// The state.
    public var state: Name
    /// The schema version that the node has of it.
    public var schemaVersion: UInt32
    /// The shapes of the state's actions, as JSON; nil if the node does not tell them.
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
    /// The schema version of the node's state.
    public var schemaVersion: UInt32

    /// Makes a hosted store.
    public init(store: StoreName, life: SequenceNumber, schemaVersion: UInt32) {
        self.store = store
        self.life = life
        self.schemaVersion = schemaVersion
    }
}

/// What an `open` or a `close` is about.
public enum HostingSubject: Sendable, Hashable {
    /// A replicated store.
    case store(StoreName)
    /// A bridged state.
    case state(Name)

    /// What entries for it concern.
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
    /// The schema version of the node's state.
    public var schemaVersion: UInt32
    /// The events that the state handles.
    public var events: [Name]
    /// The opener's state, which becomes the store's first if there is no such store.
    public var initial: EncodedState
    /// The shapes of a bridged state's actions, as JSON; nil if the node does not tell them.
    public var shapes: Bytes?

    /// Makes a request.
    public init(
        request: UInt64, subject: HostingSubject, schemaVersion: UInt32, events: [Name],
        initial: EncodedState, shapes: Bytes? = nil
    ) {
        self.shapes = shapes
        self.request = request
        self.subject = subject
        self.schemaVersion = schemaVersion
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

    /// No state: what a bridged state opens with.
    public static let none = EncodedState(coding: .json, bytes: [])
}

/// Ends hosting.
public struct Close: Sendable, Equatable {
    /// The store or the state.
    public var subject: HostingSubject

    /// Makes a message.
    public init(subject: HostingSubject) {
        self.subject = subject
    }
}

/// Asks for commits (rule 5).
public struct Fetch: Sendable, Equatable {
    /// The node's number for this request, repeated in `entries`.
    public var request: UInt64
    /// The first number that is wanted. The commit that contains it is sent whole.
    public var from: SequenceNumber
    /// The most bytes of commits that the answer may carry, but for one commit at least.
    public var limitBytes: UInt32
    /// The delivery tag of the newest answer that was read on this connection; 0 for none.
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

/// How far a node is. Sent as it advances, and as a sign of life.
public struct Progress: Sendable, Equatable {
    /// The highest number up to which all of the node's replicas have applied.
    public var applied: SequenceNumber
    /// The counter up to which the node has every outcome (rule 9).
    public var settled: UInt64
    /// The replicas that go no further, though they are hosted (rules 17 and 23).
    public var stopped: [StoppedStore]

    /// Makes a message.
    public init(applied: SequenceNumber, settled: UInt64, stopped: [StoppedStore] = []) {
        self.applied = applied
        self.settled = settled
        self.stopped = stopped
    }
}

/// A replica that goes no further.
public struct StoppedStore: Sendable, Hashable {
    /// The store.
    public var store: StoreName
    /// Its life.
    public var life: SequenceNumber
    /// The number of the entry that it did not apply.
    public var sequence: SequenceNumber

    /// Makes a stopped store.
    public init(store: StoreName, life: SequenceNumber, sequence: SequenceNumber) {
        self.store = store
        self.life = life
        self.sequence = sequence
    }
}

/// Ends a life of a store, wherever it is hosted (rule 16). Asked again as often as need be: a life
/// that is over stays over, and no other one is touched.
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

/// Has an entry be without effect for what it concerns (rule 23).
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

/// Freezes a store, or thaws it (rule 21). Asked again as often as need be.
public struct Freeze: Sendable, Hashable {
    /// The node's number for this request, repeated in the answer.
    public var request: UInt64
    /// The store.
    public var store: StoreName
    /// The number of its `created` entry.
    public var life: SequenceNumber
    /// Whether it is to be frozen, or to be thawed.
    public var isFrozen: Bool

    /// Makes a request.
    public init(request: UInt64, store: StoreName, life: SequenceNumber, isFrozen: Bool) {
        self.request = request
        self.store = store
        self.life = life
        self.isFrozen = isFrozen
    }
}

/// Asks for a number such that whoever has applied everything up to it has seen every action whose
/// receipt was given before the question (rule 29).
public struct Barrier: Sendable, Hashable {
    /// The node's number for this request, repeated in the answer.
    public var request: UInt64

    /// Makes a request.
    public init(request: UInt64) {
        self.request = request
    }
}
