import Conflux
import ConfluxVocabulary

/// Decisions about stores that an entry of the log makes, for every process.
extension Node {
    /// Freezes a store in every process: no action reaches it until it is thawed. It stays open and
    /// readable.
    ///
    /// Actions for it are rejected (`frozen`). An action for its whole state skips it, and is
    /// never applied to it later. Freezing a frozen store changes nothing.
    ///
    /// ```swift
    /// try await node.freeze(stock)     // nobody takes anything any more
    /// print(stock.left)
    /// try await node.thaw(stock)
    /// ```
    ///
    /// - Parameters:
    ///   - store: A store that this node hosts.
    ///   - patience: How long to wait until the store is frozen, and this node knows it.
    /// - Throws: ``NodeError``: `notHosted`, `timedOut`, `cancelled`, `closed`; `unanswered` when the
    ///   store was dropped, or the node has as many waits under way as it may. After `timedOut` the
    ///   store may still be frozen.
    public func freeze<S: ReplicatedState>(
        _ store: Store<S>, patience: Duration = .seconds(10)
    ) async throws(NodeError) {
        try await core.freeze(store, isFrozen: true, patience: patience)
    }

    /// Thaws a frozen store in every process: actions that are ordered from now on reach it.
    ///
    /// - Parameters:
    ///   - store: A store that this node hosts. It may have been frozen by anybody, or by the sequencer,
    ///     because nobody hosted it or its replicas did not agree.
    ///   - patience: How long to wait until the store is thawed, and this node knows it.
    /// - Throws: ``NodeError``, as for freezing.
    public func thaw<S: ReplicatedState>(
        _ store: Store<S>, patience: Duration = .seconds(10)
    ) async throws(NodeError) {
        try await core.freeze(store, isFrozen: false, patience: patience)
    }

    /// Raises a store's schema version for all processes, to the newest one that every host understands.
    ///
    /// Needed only if a program that hosts the store says so (``NodeSettings/upgrades``). Every host migrates a snapshot
    /// of the store first. If that fails anywhere, nothing changes.
    ///
    /// - Parameters:
    ///   - store: A store that this node hosts.
    ///   - patience: How long to wait until the version has risen, and this node knows it.
    /// - Throws: ``NodeError``: `rejected` with `upgradeFailed` as ``NodeError/rejection`` when no newer version is
    ///   understood everywhere, a host does not allow it, or a migration failed; otherwise as for freezing.
    public func upgrade<S: ReplicatedState>(
        _ store: Store<S>, patience: Duration = .seconds(30)
    ) async throws(NodeError) {
        guard let name = core.stores.name(of: store) else { throw .notHosted }
        try await core.wait(
            for: .upgraded(name, life: nil, version: 0, mayReplay: false), patience: patience)
    }

    /// Skips an entry in every process, so that it has no effect: an entry that crashes programs,
    /// or that no program here can apply.
    ///
    /// Stores that stopped before the entry (``NodeEvent/storeStopped(_:at:message:)``) continue after
    /// it: open ones by themselves, others when they are opened again. The entry stays in the log. You
    /// can skip it only while no replica has applied it. If one has, the others get that replica's
    /// state instead.
    ///
    /// ```swift
    /// for await case .storeStopped(let store, let sequence?, _) in node.events {
    ///     try await node.skip(sequence, for: .store(store))
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - sequence: The entry's number.
    ///   - target: What the entry must not have an effect on: one store, or all stores of a state.
    ///     Stores that the entry does not concern are not affected.
    ///   - patience: How long to wait until the entry is skipped, and this node knows it.
    /// - Throws: ``NodeError``: `rejected` when a replica has applied the entry, or may have, with
    ///   `passed` as ``NodeError/rejection``; `timedOut`, `cancelled`, `closed`; `unanswered` when
    ///   the sequencer remembers as many skipped entries, or the node has as many waits under way, as
    ///   it may. After `timedOut` the entry may still be skipped.
    public func skip(
        _ sequence: SequenceNumber, for target: Target, patience: Duration = .seconds(10)
    ) async throws(NodeError) {
        try await core.wait(for: .skipped(sequence, target), patience: patience)
    }
}

extension NodeCore {
    func freeze<S: ReplicatedState>(
        _ store: Store<S>, isFrozen: Bool, patience: Duration
    ) async throws(NodeError) {
        guard let name = stores.name(of: store) else { throw .notHosted }
        try await wait(for: .frozen(name, life: nil, isFrozen), patience: patience)
    }
}
