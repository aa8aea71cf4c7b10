import ConfluxVocabulary
import Synchronization

/// A chain of changes to several stores, which takes effect as a whole or not at all.
///
/// ```swift
/// Scope.current.chain()
///     .dispatch(.setCounter(10), to: counter)
///     .dispatch(.setText("text"), to: label)
///     .react()
/// ```
///
/// Actions are checked and applied on copies when the chain is resolved by ``react()``. If one is
/// refused, none has an effect. Nothing comes between in any of the stores, but two plain reads may see one
/// store before and one after the change. Observers are notified once all of it is applied, on their store's
/// executor. Checks, `apply` and functions of storages run on the thread of the store that joins last.
///
/// A transaction may be used on any thread, and is resolved once: adding to it afterwards ends the program
/// with a message. A transaction that is released unresolved is aborted. It takes stores of models and
/// storages in its scope, which no node replicates; a store of another scope ends the program with a
/// message.
///
/// If you also import SwiftUI, write `Conflux.Transaction`.
public final class Transaction: Sendable {
    private struct Content {
        /// In the order in which the stores were named first; nil once it is resolved.
        var parts: [any ChainPart]? = []

        var openParts: [any ChainPart] {
            guard let parts else {
                preconditionFailure("The transaction has already ended. Begin another one.")
            }
            return parts
        }
    }

    private let scope: Scope
    private let label: DispatchLabel
    private let state = Mutex(Content())

    init(in scope: Scope, _ label: DispatchLabel) {
        self.scope = scope
        self.label = label
    }

    /// Adds an action for a store.
    ///
    /// - Parameters:
    ///   - action: What is to happen.
    ///   - store: A store of the transaction's scope.
    /// - Returns: The transaction itself.
    @discardableResult
    public func dispatch<S: ValueHolder>(_ action: S.Action, to store: Store<S>) -> Self {
        precondition(store.core.scope === scope, "\(S.self)'s store belongs to another scope")
        // Actions may be committed on another thread: that is the contract of `State.Action`.
        nonisolated(unsafe) let action = action
        state.withLock { state in
            var parts = state.openParts
            let known = parts.first { $0.lane === store.core } as? StoreChainPart<S>
            let part = known ?? StoreChainPart(store)
            if known == nil { parts.append(part) }
            part.actions.append(action)
            state.parts = parts
        }
        return self
    }

    /// Adds a function that changes a storage.
    ///
    /// - Parameters:
    ///   - store: A storage of the transaction's scope.
    ///   - change: Gets a draft of the value. Called once.
    /// - Returns: The transaction itself.
    @discardableResult
    public func change<Value>(
        _ store: Storage<Value>,
        _ change: @escaping @Sendable (inout StorageDraft<Value>) throws -> Void
    ) -> Self {
        dispatch(StorageCommit(change), to: store)
    }

    /// Resolves the chain: all of it takes effect, or nothing.
    ///
    /// It returns at once. Where the stores are on `.immediate` and nothing is under way in them, all of it is
    /// applied by then. Where another thread commits to one of them, it is applied soon after: wait for the
    /// handle.
    ///
    /// - Returns: A handle, which ends when all is applied. ``DispatchHandle/receipt(within:)`` throws `refused`
    ///   with the check's error, `intercepted`, `rejected` for a store that a node replicates.
    @discardableResult
    public func react() -> DispatchHandle {
        let parts = resolve()
        if parts.isEmpty { return DispatchHandle(.committed(.ofNothing)) }
        for part in parts where !part.pass(label) {
            for part in parts { part.end(.failed(.intercepted)) }
            return DispatchHandle(.failed(.intercepted))
        }
        let tally = Tally { outcome in
            for part in parts { part.end(outcome) }
        }
        tally.expect(1)
        let meeting = Rendezvous(count: parts.count) { isWhole in
            for part in parts { part.meeting = nil }
            guard isWhole else { return tally.report(.failed(.cannotTakePart), order: 0) }
            Self.commit(parts) { tally.report($0, order: 0) }
        }
        for part in parts { part.meeting = meeting }
        scope.take(parts, isMeeting: true)
        return tally.handle
    }

    /// Aborts the chain: none of it has an effect.
    public func abort() {
        _ = resolve()
    }

    private func resolve() -> [any ChainPart] {
        state.withLock { state in
            defer { state.parts = nil }
            return state.openParts
        }
    }

    /// Commits where all lanes have met. Reports the outcome once, when all observers have been called.
    private static func commit(
        _ parts: [any ChainPart], whenTold end: @escaping @Sendable (Outcome) -> Void
    ) {
        let receipts: [Receipt?]
        do {
            let timestamp = WallClock.now
            receipts = try parts.map { try $0.prepare(at: timestamp) }
        } catch {
            return end(.failed(.refused(error, receipt: .ofNothing)))
        }
        for part in parts { part.tellBefore() }
        for part in parts { part.exchange() }
        let outcome = Outcome.committed(receipts.lazy.compactMap { $0 }.first ?? .ofNothing)
        // Counts the stores that have still to notify their observers.
        let untold = Countdown(parts.count) { end(outcome) }
        for part in parts { part.tellAfter { untold.count() } }
    }
}

extension Scope {
    /// Begins a chain of changes to several stores of this scope.
    ///
    /// - Parameters:
    ///   - name: What is done, in a word, for middleware that observes its actions.
    ///   - file: The file of the call.
    ///   - function: The function of the call.
    ///   - line: The line of the call.
    /// - Returns: The chain, to be resolved by ``Transaction/react()`` or ``Transaction/abort()``.
    public func chain(
        _ name: String = "", file: StaticString = #file, function: StaticString = #function,
        line: UInt = #line
    ) -> Transaction {
        Transaction(in: self, DispatchLabel(name, file: file, function: function, line: line))
    }
}
