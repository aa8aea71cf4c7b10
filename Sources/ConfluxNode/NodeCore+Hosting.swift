import Conflux
import ConfluxProtocol
import ConfluxZeroMQ
import Synchronization

extension NodeCore {
    func bridge<S: BridgedState>(_ state: S.Type, _ name: Name) async throws(NodeError) {
        claims: while true {
            switch stores.claimBridge(name) {
            case .open: return
            case .opening:
                await stores.waitForBridge(name)
                if Task.isCancelled { throw .cancelled }
            case .mine: break claims
            }
        }
        let scope = scope
        let payloadBytesMax = settings.payloadBytesMax
        do throws(NodeError) {
            try await open(
                .state(name), schemaVersion: S.schemaVersion, initial: .none,
                makeApplier: {
                    TypedStateApplier<S>(
                        name: name, scope: scope, payloadBytesMax: payloadBytesMax)
                },
                attach: { _ in })
        } catch {
            stores.settleBridge(name, isOpen: false)
            throw error
        }
        let route = OutboxRoute<S>(outbox: outbox, target: .state(name))
        let former = scope.channel(of: S.self).setRoute(route)
        if let other = former as? OutboxRoute<S>, !other.isClosed {
            scope.channel(of: S.self).setRoute(other)
            stores.settleBridge(name, isOpen: false)
            jobs.post(.unregister(.state(name)))
            throw NodeError(
                code: .alreadyHosted,
                message: """
                    Another node bridges \(name) in this scope, so each action would come twice. \
                    Use that node, close it first, or give this one a scope of its own.
                    """)
        }
        stores.settleBridge(name, isOpen: true)
    }

    func unbridge<S: BridgedState>(_ state: S.Type, _ name: Name) {
        let jobs = jobs
        guard stores.removeBridge(name, whenRemoved: { jobs.post(.unregister(.state(name))) })
        else { return }
        scope.channel(of: S.self).setRoute(nil)
    }

    func store<S: ReplicatedState>(
        _ state: S.Type, _ name: StoreName, executor: Executor
    ) async throws(NodeError) -> Store<S> {
        while true {
            switch stores.claim(name) {
            case .open(let object):
                guard let store = object as? Store<S> else {
                    throw .alreadyHosted(name, as: "\(type(of: object))")
                }
                return store
            case .opening:
                await stores.waitForOpening(of: name)
                if Task.isCancelled { throw .cancelled }
            case .mine:
                let store = scope.run {
                    Store<S>(state: S(), mutations: S.mutations, executor: executor)
                }
                try await host(store, name)
                return store
            }
        }
    }

    func replicate<S: ReplicatedState>(
        _ store: Store<S>, _ name: StoreName
    ) async throws(NodeError) {
        while true {
            switch stores.claim(name) {
            case .open(let object):
                guard object === store else {
                    throw .alreadyHosted(name, as: "another store")
                }
                return
            case .opening:
                await stores.waitForOpening(of: name)
                if Task.isCancelled { throw .cancelled }
            case .mine:
                try await host(store, name)
                return
            }
        }
    }

    /// Hosts a store whose name this caller has claimed.
    private func host<S: ReplicatedState>(
        _ store: Store<S>, _ name: StoreName
    ) async throws(NodeError) {
        let core = store.core
        do throws(NodeError) {
            try await bridge(S.self, name.state)
            // From here on what is dispatched is ordered; what was dispatched before is in the
            // state that the snapshot below takes.
            let route = OutboxRoute<S>(outbox: outbox, target: .store(name))
            core.setRoute(route)
            let initial = try await encodedState(of: core)
            let scope = scope
            let payloadBytesMax = settings.payloadBytesMax
            let hosted = Handover(HostedStore(name, core: core, route: route))
            try await open(
                .store(name), schemaVersion: S.schemaVersion,
                initial: EncodedState(coding: .json, bytes: initial[...]),
                makeApplier: {
                    TypedStateApplier<S>(
                        name: name.state, scope: scope, payloadBytesMax: payloadBytesMax)
                },
                attach: { applier in
                    (applier as? TypedStateApplier<S>)?.insert(hosted.value)
                })
        } catch {
            core.setRoute(nil)
            stores.settle(name, nil)
            throw error
        }
        stores.settle(name, store)
        core.whenClosed { [weak self] in self?.released(name) }
    }

    /// The last holder of a store let it go.
    private func released(_ name: StoreName) {
        let jobs = jobs
        stores.remove(name, nil) { jobs.post(.unregister(.store(name))) }
    }

    func close<S: ReplicatedState>(_ store: Store<S>) {
        let jobs = jobs
        guard let name = stores.name(of: store),
            stores.remove(name, store, whenRemoved: { jobs.post(.unregister(.store(name))) })
        else { return }
        store.core.setRoute(ClosedRoute<S>(name))
        // The state stays bridged; this store is none of those that hear of it any more.
        scope.channel(of: S.self).remove(store.core)
    }

    private func encodedState<S: ReplicatedState>(
        of core: StoreCore<S>
    ) async throws(NodeError) -> [UInt8] {
        let encoder = CanonicalEncoder()
        let result = await withCheckedContinuation { continuation in
            core.inspect { state, _ in
                continuation.resume(
                    returning: state.map { state in
                        Result { try encoder.encode(state.snapshot) }
                    })
            }
        }
        switch result {
        case .success(let bytes): return bytes
        case .failure(let error):
            throw NodeError(
                code: .openFailed, message: "The state of \(S.name) can't be encoded: \(error)")
        case nil: throw .closed
        }
    }

    /// Opens a store or a state, and waits until it is current.
    private func open(
        _ subject: HostingSubject, schemaVersion: Int, initial: EncodedState,
        makeApplier: @escaping @Sendable () -> StateApplier,
        attach: @escaping @Sendable (StateApplier) -> Void
    ) async throws(NodeError) {
        let jobs = jobs
        let outcome = OneShot<Result<SequenceNumber, NodeError>>()
        let registration = Registration(
            open: Open(
                request: takeRequest(), subject: subject,
                schemaVersion: UInt32(clamping: schemaVersion), events: [], initial: initial),
            makeApplier: makeApplier, attach: attach, completion: { outcome.send($0) })
        guard jobs.post(.register(registration)) == .accepted else { throw .closed }
        let result = await outcome.receive(onCancel: .failure(.cancelled))
        if case .failure(let error) = result, error.code == .cancelled {
            jobs.post(.unregister(subject))
        }
        _ = try result.get()
    }
}

extension NodeError {
    static func alreadyHosted(_ name: StoreName, as other: String) -> NodeError {
        NodeError(
            code: .alreadyHosted,
            message: """
                This node hosts \(name) already, as \(other). Use that one, or close it first.
                """)
    }
}
