import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Synchronization

extension NodeCore {
    /// Sends global actions of a state to the log, and delivers them to its stores in this node's scope.
    ///
    /// - Parameters:
    ///   - state: The state.
    ///   - name: Its name.
    ///   - guest: A store that will be hosted. It needs no feed of the bridge.
    ///   - time: How long to wait.
    /// - Throws: Why the state is not bridged.
    package func bridge<S: BridgedState>(
        _ state: S.Type, _ name: Name, besides guest: StoreCore<S>? = nil, _ time: OpeningTime
    ) async throws(NodeError) {
        claims: while true {
            switch stores.claim(.state(name)) {
            case .open: return
            case .opening: try await waitForOpening(of: .state(name), time)
            case .mine: break claims
            }
        }
        let loss = Loss()
        do throws(NodeError) {
            try await open(.state(name), time) {
                [weak self, scope, settings] request, completion in
                .bridge(
                    S.self, name, request: request, scope: scope,
                    payloadBytesMax: settings.payloadBytesMax, completion: completion,
                    lost: { error in
                        loss.give(error)
                        self?.bridgeLost(S.self, name, error)
                    })
            }
        } catch {
            stores.settle(.state(name), isOpen: false)
            throw error
        }
        let route = OutboxRoute<S>(outbox: outbox, target: .state(name))
        let (channel, jobs) = (scope.channel(of: S.self), jobs)
        // Before the route is set: so what the route orders comes after the beginning of a store
        // that is there.
        let formerHook = channel.whenInhabited(besides: guest) { jobs.post(.inhabited(name)) }
        let former = channel.setRoute(route)
        if let other = former as? OutboxRoute<S>, !other.isClosed {
            channel.setRoute(other)
            channel.whenInhabited(formerHook)
            stores.settle(.state(name), isOpen: false)
            jobs.post(.unregister(.state(name)))
            throw NodeError(
                code: .alreadyHosted,
                message: """
                    Another node bridges \(name) in this scope, so each action would come twice. \
                    Use that node, close it first, or give this one a scope of its own.
                    """)
        }
        stores.settle(.state(name), isOpen: true)
        // The bridge may have been lost before it was in the table.
        if let error = loss.error { bridgeLost(S.self, name, error) }
    }

    func unbridge<S: BridgedState>(_ state: S.Type, _ name: Name) {
        let (jobs, outbox) = (jobs, outbox)
        let channel = scope.channel(of: S.self)
        let isRemoved = stores.remove(.state(name)) {
            jobs.post(.unregister(.state(name)))
            // Another node may have bridged the state since this one was closed.
            channel.replaceRoute(by: nil) {
                ($0 as? OutboxRoute<S>)?.leads(to: outbox) ?? false
            }
        }
        guard !isRemoved else { return }
        channel.replaceRoute(by: nil) { ($0 as? ClosedRoute<S>)?.isStopped ?? false }
    }

    /// Stops a bridge that could not be bridged again: dispatched actions would reach this process alone.
    private func bridgeLost<S: BridgedState>(_ state: S.Type, _ name: Name, _ error: NodeError) {
        let outbox = outbox
        let channel = scope.channel(of: S.self)
        let isRemoved = stores.remove(.state(name)) {
            channel.replaceRoute(by: ClosedRoute(stoppedBy: error)) {
                ($0 as? OutboxRoute<S>)?.leads(to: outbox) ?? false
            }
        }
        if isRemoved { events.send(.bridgeStopped(name, message: error.message)) }
    }

    func store<S: ReplicatedState>(
        _ state: S.Type, _ name: StoreName, executor: Executor, _ time: OpeningTime
    ) async throws(NodeError) -> Store<S> {
        while true {
            switch stores.claim(.store(name)) {
            case .open(let object):
                guard let store = object as? Store<S> else {
                    throw .alreadyHosted(name, as: object.map { "\(type(of: $0))" } ?? "")
                }
                return store
            case .opening: try await waitForOpening(of: .store(name), time)
            case .mine:
                let store = scope.run {
                    Store<S>(state: S(), mutations: S.mutations, executor: executor)
                }
                try await host(store, name, time)
                return store
            }
        }
    }

    func replicate<S: ReplicatedState>(
        _ store: Store<S>, _ name: StoreName, _ time: OpeningTime
    ) async throws(NodeError) {
        while true {
            switch stores.claim(.store(name)) {
            case .open(let object):
                guard object === store else {
                    throw .alreadyHosted(name, as: "another store")
                }
                return
            case .opening: try await waitForOpening(of: .store(name), time)
            case .mine:
                try await host(store, name, time)
                return
            }
        }
    }

    /// Waits until another caller has opened it, or could not.
    private func waitForOpening(
        of subject: HostingSubject, _ time: OpeningTime
    ) async throws(NodeError) {
        guard await stores.waitForOpening(of: subject, within: time.leftForAnother) else {
            throw NodeError(
                code: .timedOut,
                message: "Another caller still opens it after \(time.passed). Wait longer.")
        }
        if Task.isCancelled { throw .cancelled }
    }

    /// Hosts a store whose name this caller has claimed.
    private func host<S: ReplicatedState>(
        _ store: Store<S>, _ name: StoreName, _ time: OpeningTime
    ) async throws(NodeError) {
        let core = store.core
        if core.isOrdered {
            stores.settle(.store(name), isOpen: false)
            throw .ordered(name)
        }
        S._willReplicate()
        let loss = Loss()
        var isBridged = false
        do throws(NodeError) {
            try await bridge(S.self, name.state, besides: core, time)
            isBridged = true
            // From here on, dispatches are ordered. Earlier dispatches are in the state that the
            // snapshot below takes.
            let route = OutboxRoute<S>(
                outbox: outbox, target: .store(name),
                past: PastReader(of: address, settings))
            core.setRoute(route)
            let initial = try await encodedState(of: core, time)
            try await open(.store(name), time) {
                [weak self, weak store, scope, settings] request, completion in
                .store(
                    core, name, route: route, initial: initial, policy: settings.upgrades,
                    request: request,
                    scope: scope,
                    payloadBytesMax: settings.payloadBytesMax, completion: completion,
                    lost: { error in
                        loss.give(error)
                        if let store { self?.storeLost(store, name, error) }
                    })
            }
        } catch {
            if isBridged {
                // The store is now a local store of the bridged state.
                let jobs = jobs
                scope.channel(of: S.self).whenInhabited { jobs.post(.inhabited(name.state)) }
            }
            core.setRoute(nil)
            stores.settle(.store(name), isOpen: false)
            throw error
        }
        reportTicks(of: core, name)
        core.watch(isOver: false)
        stores.settle(
            .store(name), isOpen: true, store,
            whenNodeEnds: { [weak core] in
                core?.watch(isOver: true)
            })
        core.whenClosed { [weak self] in self?.released(name) }
        // The store may have been lost before it was in the table.
        if let error = loss.error { storeLost(store, name, error) }
    }

    /// Ends the hosting of a store that was dropped, or that could not be opened again after its history was lost. (If it
    /// stopped at an entry of the new history, that was reported then.) It keeps its last state, which the other replicas
    /// no longer have.
    private func storeLost<S: ReplicatedState>(
        _ store: Store<S>, _ name: StoreName, _ error: NodeError
    ) {
        let core = store.core
        let isRemoved = stores.remove(.store(name), store) {
            core.setRoute(ClosedRoute<S>(stoppedBy: error))
        }
        guard isRemoved else { return }
        scope.channel(of: S.self).remove(core)
        core.watch(isOver: true)
        switch error.code {
        case .storeStopped: break
        case .dropped: events.send(.storeDropped(name))
        default: events.send(.storeStopped(name, at: nil, message: error.message))
        }
    }

    /// Ends the hosting of a store that was released.
    private func released(_ name: StoreName) {
        let jobs = jobs
        stores.remove(.store(name)) { jobs.post(.unregister(.store(name))) }
    }

    /// Drops a store that this node hosts.
    func drop<S: ReplicatedState>(
        _ store: Store<S>, patience: Duration
    ) async throws(NodeError) {
        guard let name = stores.name(of: store) else { throw .notHosted }
        try await wait(for: .dropped(name, life: nil), patience: patience)
    }

    func close<S: ReplicatedState>(_ store: Store<S>) {
        let jobs = jobs
        let core = store.core
        guard let name = stores.name(of: store) else { return }
        let isRemoved = stores.remove(.store(name), store) {
            jobs.post(.unregister(.store(name)))
            core.setRoute(ClosedRoute<S>(name))
        }
        guard isRemoved else { return }
        // The state stays bridged, but this store no longer gets its actions.
        scope.channel(of: S.self).remove(store.core)
        core.watch(isOver: true)
    }

    private func encodedState<S: ReplicatedState>(
        of core: StoreCore<S>, _ time: OpeningTime
    ) async throws(NodeError) -> [UInt8] {
        // The store's executor may never run, so the wait can be cancelled.
        let outcome = OneShot<Result<[UInt8], NodeError>>()
        core.inspect { state, _ in
            guard let state else { return outcome.send(.failure(.closed)) }
            do {
                outcome.send(
                    .success(try S.encode(state.snapshot, as: S.oldestSchemaVersion)))
            } catch {
                outcome.send(
                    .failure(
                        NodeError(
                            code: .openFailed,
                            message: """
                                The state of \(S.name) can't be encoded, and every replica needs it. \
                                Correct how its type encodes itself: \(error)
                                """)))
            }
        }
        return try await outcome.receive(
            onCancel: .failure(.cancelled), timeout: time.left, onTimeout: .failure(time.isOver)
        ).get()
    }

    /// Opens a store or a state, and waits until it is current.
    private func open(
        _ subject: HostingSubject, _ time: OpeningTime,
        _ registration: (
            _ request: UInt64,
            _ completion: @escaping @Sendable (Result<SequenceNumber, NodeError>) -> Void
        ) -> Registration
    ) async throws(NodeError) {
        let jobs = jobs
        let outcome = OneShot<Result<SequenceNumber, NodeError>>()
        let registration = registration(takeRequest()) { outcome.send($0) }
        guard jobs.post(.register(registration)) == .accepted else { throw .closed }
        let vigil = keep(.hosting(subject), time.patience, since: time.begun) { error in
            if let error { outcome.send(.failure(error)) }
        }
        let result = await outcome.receive(
            onCancel: .failure(.cancelled), timeout: time.left, onTimeout: .failure(time.isOver))
        port.post(.endVigil(vigil))
        if case .failure(let error) = result,
            [.cancelled, .unreachable, .timedOut].contains(error.code)
        {
            jobs.post(.unregister(subject))
        }
        _ = try result.get()
    }
}

/// How long a caller waits for what it opens.
package struct OpeningTime: Sendable {
    /// How long to wait for the sequencer, from the beginning or from the last part of the state that came.
    let patience: Duration
    /// How long to wait at most; nil to wait as long as the patience lets it.
    let limit: Duration?
    let begun = Moment.now.monotonic

    package init(_ patience: Duration, _ limit: Duration? = nil) {
        (self.patience, self.limit) = (patience, limit)
    }

    var passed: Duration { Moment.now.monotonic - begun }

    /// How much of the limit is left.
    var left: Duration? { limit.map { max(.zero, $0 - passed) } }

    /// How long to wait until another caller has opened it.
    var leftForAnother: Duration { max(.zero, min(patience, limit ?? patience) - passed) }

    /// The error after the limit.
    var isOver: NodeError {
        NodeError(
            code: .timedOut,
            message: """
                It did not open within \(limit ?? patience). Give it more time; if that does not help, see what the \
                sequencer prints.
                """)
    }
}

/// Why something is no longer hosted, if it was lost before its opener knew that it was open.
private final class Loss: Sendable {
    private let state = Mutex<NodeError?>(nil)

    func give(_ error: NodeError) { state.withLock { $0 = error } }

    var error: NodeError? { state.withLock { $0 } }
}

extension NodeError {
    static func ordered(_ name: StoreName) -> NodeError {
        NodeError(
            code: .openFailed,
            message: """
                The store that is to be \(name) waits for another store, or another one for it (Scope.order). A \
                replicated store applies actions in the order of the log alone. End that order first.
                """)
    }

    static func alreadyHosted(_ name: StoreName, as other: String) -> NodeError {
        NodeError(
            code: .alreadyHosted,
            message: """
                This node hosts \(name) already, as \(other). Use that one, or close it first.
                """)
    }
}
