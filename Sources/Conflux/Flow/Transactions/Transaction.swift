import ConfluxVocabulary
import Synchronization

/// A chain of changes to several stores, which becomes visible at once or never.
///
/// ```swift
/// Scope.current.chain()
///     .dispatch(.setCounter(10), to: counter)
///     .dispatch(.setText("text"), to: label)
///     .react()
/// ```
///
/// Actions are checked and applied on copies when the chain is resolved by ``react()``. If one is
/// refused, none has an effect. Another transaction that reads two of the stores finds both changed or
/// neither; two plain reads may see one before and one after the change. Observers are notified once all
/// of it is applied, on their store's executor. Checks, `apply` and functions of storages run on the
/// thread of the store that joins last.
///
/// ``read(_:)`` returns the value that the chain would leave, and guards the store: if the store changes
/// before the chain is resolved, `react()` ends in ``DispatchError/Code/conflict``, and nothing has an
/// effect. ``Scope/transaction(_:attempts:file:function:line:isolation:_:)`` runs it again then.
///
/// A transaction may be used on any thread, and is resolved once: adding to it afterwards ends the program
/// with a message. A transaction that is released unresolved is aborted. It takes stores of models and
/// storages in its scope, which no node replicates; a store of another scope ends the program with a
/// message.
///
/// If you also import SwiftUI, write `Conflux.Transaction`.
public final class Transaction: Sendable {
    fileprivate struct Content {
        /// In the order in which the stores were named first.
        var participants: [any Participant] = []
        /// Why it can't be committed.
        var failure: DispatchError?
        var isResolved = false
    }

    private let scope: Scope
    private let label: DispatchLabel
    private let state = Mutex(Content())

    init(in scope: Scope, _ label: DispatchLabel) {
        self.scope = scope
        self.label = label
    }

    /// The value of a store, as the actions so far would leave it.
    ///
    /// - Parameter store: A store of the transaction's scope. Once it has been read, the
    ///   transaction is committed only if the store hasn't changed since.
    /// - Returns: The value. An action that draws random numbers or uses its time gets other ones
    ///   here than at its commit.
    public func read<S: ValueHolder>(_ store: Store<S>) -> S.Value {
        let participant = participant(store)
        do {
            return try participant.read()
        } catch {
            fail(error)
            return participant.present
        }
    }

    /// Adds an action for a store.
    ///
    /// - Parameters:
    ///   - action: What is to happen.
    ///   - store: A store of the transaction's scope.
    /// - Returns: The transaction itself.
    @discardableResult
    public func dispatch<S: ValueHolder>(_ action: S.Action, to store: Store<S>) -> Self {
        do {
            try participant(store).add(action)
        } catch {
            fail(error)
        }
        return self
    }

    /// Adds a function that changes a storage.
    ///
    /// - Parameters:
    ///   - store: A storage of the transaction's scope.
    ///   - change: Gets a draft of the value. It may be called several times.
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
    ///   with the check's error, `conflict`, `intercepted`, `rejected` for a store that a node replicates.
    @discardableResult
    public func react() -> DispatchHandle {
        let (participants, failure) = resolve()
        if let failure {
            let isAsRead = participants.allSatisfy(\.isAsRead)
            return DispatchHandle(.failed(isAsRead ? failure : .conflict))
        }
        guard !participants.isEmpty else {
            return DispatchHandle(
                .committed(
                    Receipt(log: nil, epoch: .none, sequence: .zero, timestamp: WallClock.now)))
        }
        for participant in participants where !participant.pass(label) {
            for participant in participants { participant.end(.failed(.intercepted)) }
            return DispatchHandle(.failed(.intercepted))
        }
        let tally = Tally { outcome in
            for participant in participants { participant.end(outcome) }
        }
        tally.expect(1)
        let meeting = Rendezvous(count: participants.count) { isWhole in
            Self.commit(participants, isWhole: isWhole) { tally.report($0, order: 0) }
        }
        scope.pass { [scope] placed in
            var channels: [any StateChannel] = []
            for channel in participants.map(\.channel)
            where !channels.contains(where: { $0 === channel }) {
                channels.append(channel)
            }
            let mark = ThreadMark.current
            // Used by this thread alone. Participants without a place are told so outside of the locks.
            nonisolated(unsafe) var (places, absent) = (Reservation(), [Lane]())
            scope.reserving(in: channels) { _ in
                // All holds are made first: a lane must not wait for what stands behind the meeting
                // it is to join.
                let holds = participants.map { scope.order.hold(for: $0.lane) }
                for (participant, hold) in zip(participants, holds)
                where !participant.place(meeting, behind: hold, in: &places, mark) {
                    absent.append(participant.lane)
                }
            }
            placed()
            for lane in absent { meeting.abandon(lane) }
            places.serve(mark)
        }
        return tally.handle
    }

    /// Whether no store has changed since it was read. If so, there was a moment, that of the last
    /// reading, at which all of them were as they were read.
    fileprivate var isAsRead: Bool {
        state.withLock { $0.participants }.allSatisfy(\.isAsRead)
    }

    /// Aborts the chain: none of it has an effect.
    public func abort() {
        _ = resolve()
    }

    private func resolve() -> ([any Participant], DispatchError?) {
        state.withLock { state in
            state.checkOpen()
            state.isResolved = true
            defer { state.participants = [] }
            return (state.participants, state.failure)
        }
    }

    private func participant<S: ValueHolder>(_ store: Store<S>) -> StoreParticipant<S> {
        precondition(store.core.scope === scope, "\(S.self)'s store belongs to another scope")
        return state.withLock { state in
            state.checkOpen()
            for case let known as StoreParticipant<S> in state.participants
            where known.lane === store.core {
                return known
            }
            let new = StoreParticipant(store)
            state.participants.append(new)
            return new
        }
    }

    private func fail(_ error: any Error) {
        let receipt = Receipt(log: nil, epoch: .none, sequence: .zero, timestamp: WallClock.now)
        state.withLock { state in
            if state.failure == nil { state.failure = .refused(error, receipt: receipt) }
        }
    }

    /// Commits where all lanes have met. Reports the outcome once, when all observers have been called.
    private static func commit(
        _ participants: [any Participant], isWhole: Bool,
        whenTold end: @escaping @Sendable (Outcome) -> Void
    ) {
        guard isWhole else { return end(.failed(.cannotTakePart)) }
        guard participants.allSatisfy(\.isAsRead) else { return end(.failed(.conflict)) }
        let timestamp = WallClock.now
        var receipt: Receipt?
        for participant in participants {
            do {
                let first = try participant.prepare(at: timestamp)
                if receipt == nil { receipt = first }
            } catch {
                for participant in participants { participant.forget() }
                let receipt = Receipt(log: nil, epoch: .none, sequence: .zero, timestamp: timestamp)
                return end(.failed(.refused(error, receipt: receipt)))
            }
        }
        for participant in participants { participant.tellBefore() }
        let sorted = participants.sorted {
            ObjectIdentifier($0.lane) < ObjectIdentifier($1.lane)
        }
        func exchange(_ depth: Int) {
            if depth < sorted.count { sorted[depth].exchange { exchange(depth + 1) } }
        }
        exchange(0)
        let outcome = Outcome.committed(
            receipt ?? Receipt(log: nil, epoch: .none, sequence: .zero, timestamp: timestamp))
        // Counts the stores that have still to notify their observers.
        let untold = Countdown(participants.count) { end(outcome) }
        for participant in participants { participant.tellAfter { untold.count() } }
    }
}

extension Transaction.Content {
    fileprivate func checkOpen() {
        precondition(!isResolved, "The transaction has already ended. Begin another one.")
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

    /// Runs code whose reads and changes of several stores take effect together, as if nothing had
    /// happened in between.
    ///
    /// ```swift
    /// try await Scope.current.transaction { tx in
    ///     guard tx.read(stock).left > 0 else { throw SoldOut() }
    ///     tx.dispatch(.take(amount: 1), to: stock)
    ///     tx.dispatch(.add(item), to: cart)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - name: What is done, in a word, for middleware that observes its actions.
    ///   - attempts: How often to run it at most, when stores that it read are changed meanwhile; at
    ///     least 1.
    ///   - file: The file of the call.
    ///   - function: The function of the call.
    ///   - line: The line of the call.
    ///   - isolation: The actor that the body runs on: the caller's.
    ///   - body: Reads and dispatches through the transaction, and nowhere else. What it throws
    ///     ends it without an effect, unless stores that it read were changed meanwhile: then it
    ///     runs again. It must not resolve the transaction itself.
    /// - Returns: What the body returned when it ran last.
    /// - Throws: What the body throws; the ``DispatchError`` of ``Transaction/react()``.
    @discardableResult
    public func transaction<Result>(
        _ name: String = "", attempts: Int = 64, file: StaticString = #file,
        function: StaticString = #function, line: UInt = #line,
        isolation: isolated (any Actor)? = #isolation,
        _ body: (Transaction) async throws -> Result
    ) async throws -> Result {
        precondition(attempts >= 1, "a transaction of \(attempts) attempts would never run")
        var attempt = 1
        while true {
            let transaction = chain(name, file: file, function: function, line: line)
            let result: Result
            do {
                result = try await body(transaction)
            } catch {
                // The values that it read may never have existed at the same time.
                if transaction.isAsRead { throw error }
                guard attempt < attempts else { throw DispatchError.conflict }
                attempt += 1
                continue
            }
            do throws(DispatchError) {
                try await transaction.react().receipt()
                return result
            } catch {
                guard error.code == .conflict, attempt < attempts else { throw error }
                attempt += 1
            }
        }
    }
}
