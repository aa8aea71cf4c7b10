import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// What the thread that applies works on, one after the other.
package enum ApplyJob: Sendable {
    /// The machine's word, in its order.
    case deliver(Delivery, log: LogID)
    /// Apply more of what stores were given that catch up.
    case goOn
    /// These actions of this node are on their way.
    case submitted(SubmittedBatch)
    /// A batch that was never submitted, and never will be.
    case abandoned(OutcomeBlock, count: Int)
    /// Host a store, or bridge a state, once the sequencer agrees.
    case register(Registration)
    /// Host it no longer.
    case unregister(HostingSubject)
    /// A bridged state has a store here that is not replicated: the first one since it was bridged.
    case inhabited(Name)
    /// Answer a question about a store here.
    case asked(Question)
    /// Tell when this node has applied a number.
    case wait(Wait)
    /// Nobody waits any more.
    case giveUp(request: UInt64)
    /// A store's lane has reported, on a thread of its own.
    case reported(HostingSubject)
    /// The node's own identity in the log, by which it knows its own entries.
    case identified(Incarnation)
    /// Calls a function, to show that this much was done.
    case probe(@Sendable () -> Void)
    /// The last one.
    case stop
}

/// Somebody waits until this node has applied a number.
package struct Wait: Sendable {
    /// What is waited for.
    package enum Goal: Sendable {
        /// The latest number that the sequencer confirms.
        case latest
        /// A receipt's.
        case receipt(Receipt)
        /// The end of a life of a store, which the sequencer is asked for; of the one that is hosted
        /// here unless given.
        case dropped(StoreName, life: SequenceNumber?)
        /// A life of a store is frozen, or thawed; of the one that is hosted here unless given.
        case frozen(StoreName, life: SequenceNumber?, Bool)
        /// An entry has no effect on what it concerns.
        case skipped(SequenceNumber, Target)

        /// Whether it can be asked for again when the history is lost: of a number or a life of the
        /// lost one nobody knows what it means in the next.
        var isRepeatable: Bool {
            switch self {
            case .latest, .receipt: true
            case .dropped, .frozen, .skipped: false
            }
        }
    }

    /// The node's number for it.
    package var request: UInt64
    /// What is waited for.
    package var goal: Goal
    /// Told once.
    package var completion: @Sendable (Result<SequenceNumber, NodeError>) -> Void

    /// Makes a wait.
    package init(
        request: UInt64, goal: Goal,
        completion: @escaping @Sendable (Result<SequenceNumber, NodeError>) -> Void
    ) {
        self.request = request
        self.goal = goal
        self.completion = completion
    }

    /// - Parameter hostedLife: Tells the life of a store that is hosted here.
    /// - Returns: What the machine is asked for; nil if the store is not hosted here.
    func input(hostedLife: (StoreName) -> SequenceNumber?) -> ReplicaInput? {
        switch goal {
        case .latest: .barrier(request: request)
        case .receipt(let receipt): .await(receipt, request: request)
        case .frozen(let store, let life, let isFrozen):
            (life ?? hostedLife(store)).map {
                .freeze(Freeze(request: request, store: store, life: $0, isFrozen: isFrozen))
            }
        case .skipped(let sequence, let target):
            .skip(Skip(request: request, sequence: sequence, target: target))
        case .dropped(let store, let life):
            (life ?? hostedLife(store)).map {
                .drop(Drop(request: request, store: store, life: $0))
            }
        }
    }
}

/// A store that is to be hosted, or a state that is to be bridged.
// Sendable: handed over once, and then confined to the thread that applies.
package final class Registration: @unchecked Sendable {
    /// What the sequencer is asked for.
    let open: Open
    /// Tells the stores of the state their types, and adds the replica; nothing for a bridge.
    let attach: (StateStores, StoreProgress) -> Void
    /// Told once, when the store is current, or could not be opened.
    let completion: (Result<SequenceNumber, NodeError>) -> Void
    /// Told at most once, after a good completion: the store was dropped, or after the loss of a
    /// history the store, or the state, could not be opened again. It is hosted no longer.
    let lost: (NodeError) -> Void

    init(
        open: Open, attach: @escaping (StateStores, StoreProgress) -> Void,
        completion: @escaping (Result<SequenceNumber, NodeError>) -> Void,
        lost: @escaping (NodeError) -> Void
    ) {
        self.open = open
        self.attach = attach
        self.completion = completion
        self.lost = lost
    }

    var request: UInt64 { open.request }
    var subject: HostingSubject { open.subject }
    var state: Name {
        switch subject {
        case .store(let store): store.state
        case .state(let state): state
        }
    }
}

extension Registration {
    /// Bridges a state.
    ///
    /// - Parameters:
    ///   - state: The state.
    ///   - name: Its name.
    ///   - request: The node's number for it.
    ///   - scope: Where its stores belong.
    ///   - payloadBytesMax: The most bytes of an action.
    ///   - completion: Told once how it ended.
    ///   - lost: Told when it is hosted no longer, though nobody closed it.
    /// - Returns: What the applier registers.
    package static func bridge<S: BridgedState>(
        _ state: S.Type, _ name: Name, request: UInt64, scope: Scope, payloadBytesMax: Int,
        completion: @escaping (Result<SequenceNumber, NodeError>) -> Void,
        lost: @escaping (NodeError) -> Void = { _ in }
    ) -> Registration {
        Registration(
            open: Open(
                request: request, subject: .state(name),
                schemaVersion: UInt32(clamping: S.schemaVersion), events: [], initial: .none,
                shapes: ActionCatalog.derived(
                    of: S.Action.self, bytesMax: WireLimits.shapesBytesMax
                ).map { $0.json[...] }),
            attach: { stores, _ in
                _ = stores.typed {
                    TypedRunner<S>($0, scope: scope, payloadBytesMax: payloadBytesMax)
                }
            }, completion: completion, lost: lost)
    }

    /// Hosts a store.
    ///
    /// - Parameters:
    ///   - core: The store's.
    ///   - name: Its name.
    ///   - route: The way of its dispatches.
    ///   - initial: Its state, in the canonical encoding: the first one of a store that there is
    ///     not yet.
    ///   - request: The node's number for it.
    ///   - scope: Where its stores belong.
    ///   - payloadBytesMax: The most bytes of an action.
    ///   - completion: Told once how it ended.
    ///   - lost: Told when it is hosted no longer, though nobody closed it.
    /// - Returns: What the applier registers.
    package static func store<S: ReplicatedState>(
        _ core: StoreCore<S>, _ name: StoreName, route: OutboxRoute<S>, initial: [UInt8],
        request: UInt64, scope: Scope, payloadBytesMax: Int,
        completion: @escaping (Result<SequenceNumber, NodeError>) -> Void,
        lost: @escaping (NodeError) -> Void = { _ in }
    ) -> Registration {
        let lane = ReplicaLane(of: core, route: route)
        return Registration(
            open: Open(
                request: request, subject: .store(name),
                schemaVersion: UInt32(clamping: S.schemaVersion), events: [],
                initial: EncodedState(coding: .json, bytes: initial[...])),
            attach: { stores, progress in
                let runner = stores.typed {
                    TypedRunner<S>($0, scope: scope, payloadBytesMax: payloadBytesMax)
                }
                runner?.insert(core, Replica(name, lane: lane, progress: progress))
            }, completion: completion, lost: lost)
    }
}
