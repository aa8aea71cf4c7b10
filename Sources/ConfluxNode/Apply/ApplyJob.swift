import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// A job of the applier. It does one after the other.
package enum ApplyJob: Sendable {
    /// Take a delivery of the machine, in order, in the machine's present term.
    case deliver(Delivery, log: LogID, epoch: Epoch)
    /// Apply the next slice of stores that catch up.
    case goOn
    /// Let the next part of what a store held while its snapshot was decoded enter its lane.
    case enter(StoreName)
    /// These actions of this node were submitted.
    case submitted(SubmittedBatch)
    /// A batch will never be submitted.
    case abandoned(OutcomeBlock, count: Int)
    /// Host a store or bridge a state, once the sequencer agrees.
    case register(Registration)
    /// Stop hosting it.
    case unregister(HostingSubject)
    /// A bridged state got its first local store that is not replicated.
    case inhabited(Name)
    /// Answer a question about a store here.
    case asked(Question)
    /// Notify the caller when this node has applied a number.
    case wait(Wait)
    /// A wait was cancelled.
    case giveUp(request: UInt64)
    /// A store's lane has reported, on whichever thread serves the lane.
    case reported(HostingSubject)
    /// The node's session in the log, which identifies its own entries.
    case identified(Incarnation)
    /// Call a function between two other jobs; with nil if the node ends first.
    case look(@Sendable (Applier?) -> Void)
    /// The last job.
    case stop
}

/// A wait until this node has applied a number.
package struct Wait: Sendable {
    /// What is waited for.
    package enum Goal: Sendable {
        /// The latest number that the sequencer confirms.
        case latest
        /// The number of a receipt.
        case receipt(Receipt)
        /// The end of a life of a store, which the sequencer is asked for. Without a life, it is that of the
        /// store that is hosted here.
        case dropped(StoreName, life: SequenceNumber?)
        /// A life of a store is frozen or thawed. Without a life, it is that of the store that is hosted here.
        case frozen(StoreName, life: SequenceNumber?, Bool)
        /// An entry is skipped.
        case skipped(SequenceNumber, Target)
        /// A life of a store has a newer schema version: this one, or if it is zero, the newest one that every host
        /// understands. Without a life, it is that of the store that is hosted here.
        case upgraded(StoreName, life: SequenceNumber?, version: UInt32, mayReplay: Bool)

        /// Whether the sequencer can be asked again after the history was lost. A number or a life of the lost history
        /// has no meaning in the next one.
        var isRepeatable: Bool {
            switch self {
            case .latest, .receipt: true
            case .dropped, .frozen, .skipped, .upgraded: false
            }
        }
    }

    /// The node's number for the wait.
    package var request: UInt64
    /// What is waited for.
    package var goal: Goal
    /// Called once.
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

    /// - Parameter hostedLife: Returns the life of a store that is hosted here.
    /// - Returns: The input for the machine; nil if the store is not hosted here.
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
        case .upgraded(let store, let life, let version, let mayReplay):
            (life ?? hostedLife(store)).map {
                .upgrade(
                    Upgrade(
                        request: request, store: store, life: $0, schemaVersion: version,
                        mayReplay: mayReplay))
            }
        case .dropped(let store, let life):
            (life ?? hostedLife(store)).map {
                .drop(Drop(request: request, store: store, life: $0))
            }
        }
    }
}

/// A store to host, or a state to bridge.
// Sendable: it is handed over once, and then confined to the thread that applies.
package final class Registration: @unchecked Sendable {
    /// The request to the sequencer.
    let open: Open
    /// Gives the stores of the state their types, and adds the replica. For a bridge, it adds none.
    let attach: (StateStores, StoreProgress) -> Void
    /// Called once, when the store is current or could not be opened.
    let completion: (Result<SequenceNumber, NodeError>) -> Void
    /// Called at most once, after a successful completion, when it is no longer hosted: the store was dropped, or it
    /// could not be opened again after the history was lost.
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
    /// Makes the registration of a bridge.
    ///
    /// - Parameters:
    ///   - state: The state.
    ///   - name: Its name.
    ///   - request: The node's number for the registration.
    ///   - scope: The scope of the state's stores.
    ///   - payloadBytesMax: The most bytes of an action.
    ///   - completion: Called once with the result.
    ///   - lost: Called when the state is no longer bridged, though nobody closed it.
    /// - Returns: What the applier registers.
    package static func bridge<S: BridgedState>(
        _ state: S.Type, _ name: Name, request: UInt64, scope: Scope, payloadBytesMax: Int,
        completion: @escaping (Result<SequenceNumber, NodeError>) -> Void,
        lost: @escaping (NodeError) -> Void = { _ in }
    ) -> Registration {
        Registration(
            open: Open(
                request: request, subject: .state(name),
                versions: SupportedVersions(UInt32(clamping: S.schemaVersion)),
                events: S.eventHandlers?.names ?? [], initial: .none,
                shapes: ActionCatalog.derived(
                    of: S.Action.self, bytesMax: WireLimits.shapesBytesMax
                ).map { $0.json[...] }),
            attach: { stores, _ in
                _ = stores.typed {
                    TypedRunner<S>($0, scope: scope, payloadBytesMax: payloadBytesMax)
                }
            }, completion: completion, lost: lost)
    }

    /// Makes the registration of a store.
    ///
    /// - Parameters:
    ///   - core: The store's core.
    ///   - name: Its name.
    ///   - route: The route of its dispatches.
    ///   - initial: Its state, in the canonical encoding of the oldest version. It is the initial state if the store does not
    ///     exist yet.
    ///   - policy: When its schema version rises.
    ///   - request: The node's number for it.
    ///   - scope: Where its stores belong.
    ///   - payloadBytesMax: The most bytes of an action.
    ///   - completion: Called once with the result.
    ///   - lost: Called when the store is no longer hosted, though nobody closed it.
    /// - Returns: What the applier registers.
    package static func store<S: ReplicatedState>(
        _ core: StoreCore<S>, _ name: StoreName, route: OutboxRoute<S>, initial: [UInt8],
        policy: UpgradePolicy = .whenAllUnderstand, request: UInt64, scope: Scope,
        payloadBytesMax: Int, completion: @escaping (Result<SequenceNumber, NodeError>) -> Void,
        lost: @escaping (NodeError) -> Void = { _ in }
    ) -> Registration {
        var versions = S.supportedVersions
        versions.policy = policy
        let lane = ReplicaLane(of: core, mean: { route.mean($0) })
        return Registration(
            open: Open(
                request: request, subject: .store(name),
                versions: versions, events: [],
                initial: EncodedState(coding: .json, bytes: initial[...])),
            attach: { stores, progress in
                let runner = stores.typed {
                    TypedRunner<S>($0, scope: scope, payloadBytesMax: payloadBytesMax)
                }
                runner?.insert(core, Replica(name, lane: lane, progress: progress))
            }, completion: completion, lost: lost)
    }
}
