import Conflux
import ConfluxProtocol
import ConfluxVocabulary

extension Node {
    /// Waits until this process holds a lease.
    ///
    /// Processes get a lease in the order in which they asked. When this returns, the stores of this node have applied
    /// what the holder before has done. A process that asks twice holds it once, and waits for
    /// itself. Whoever needs several leases takes them in one order everywhere, or gives a limit: two processes that hold
    /// one each and wait for the other's would wait for ever.
    ///
    /// - Parameters:
    ///   - name: The name of the lease, or two parts as in `orders/17`, each of 1 to 64 characters of `a-z 0-9 . _ -`. With
    ///     keys, the right to dispatch to a store of that name is needed.
    ///   - limit: How long to wait; nil to wait as long as it takes.
    /// - Returns: The lease. Keep it: it is released when you drop it.
    /// - Throws: `DispatchError`: `timedOut` after `limit`, `cancelled`; `leaseLost` if the session ended meanwhile: ask
    ///   again; `invalidAction` if the name is none; `rejected` if there are too many claims, or the key may not.
    public func lease(
        _ name: String, within limit: Duration? = nil
    ) async throws(DispatchError) -> Lease {
        try await core.lease(name, locks: false, within: limit)
    }

    /// Runs a function while this process holds a lease, and releases the lease after that.
    ///
    /// ```swift
    /// try await node.withLease("mailer") { lease in
    ///     // Of all processes, one is here.
    ///     while let mail = await outgoing.next() { try await send(mail, token: lease.token) }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - name: As for ``lease(_:within:)``.
    ///   - limit: How long to wait for the lease; nil to wait as long as it takes.
    ///   - body: The function. Its task is cancelled if the lease is lost.
    /// - Returns: What the function returns.
    /// - Throws: As ``lease(_:within:)``, and what the function throws. If that is only that its task was cancelled, since
    ///   the lease was lost, a `DispatchError` with the code `leaseLost`.
    public func withLease<Value: Sendable>(
        _ name: String, within limit: Duration? = nil,
        _ body: @escaping @Sendable (Lease) async throws -> Value
    ) async throws -> Value {
        let lease = try await lease(name, within: limit)
        var isLost = false
        let result = await withTaskGroup(of: Result<Value, any Error>?.self) { group in
            group.addTask {
                do { return .success(try await body(lease)) } catch { return .failure(error) }
            }
            group.addTask {
                await lease.waitUntilOver()
                return nil
            }
            var result: Result<Value, any Error>?
            while let next = await group.next() {
                // The lease is lost, or the function has returned. The other task ends soon.
                if result == nil, next == nil { isLost = !Task.isCancelled }
                group.cancelAll()
                result = result ?? next
            }
            return result
        }
        try? await lease.release(within: .seconds(1))
        guard let result else { throw DispatchError.cancelled }
        if isLost, case .failure(let error) = result, Self.isCancellation(error) {
            throw DispatchError.leaseEnded(lease.name)
        }
        return try result.get()
    }

    private static func isCancellation(_ error: any Error) -> Bool {
        switch error {
        case let error as DispatchError: error.code == .cancelled
        case let error as StoreError: error.code == .cancelled
        case let error as NodeError: error.code == .cancelled
        default: error is CancellationError
        }
    }
}

extension NodeCore {
    /// Submits an action that is already encoded, and that is taken only while a lease is held.
    package func submit(
        _ target: BatchTarget, _ payload: [UInt8], under lease: Lease
    ) -> DispatchHandle {
        outbox.submit([(target, payload)], on: [.lease(lease.claim)], mayWait: true)[0]
    }

    /// Ends the claim of any session.
    ///
    /// - Parameters:
    ///   - token: The number of the claim's entry, in the present term.
    ///   - limit: How long to wait.
    /// - Returns: The place of the entry that ends it.
    /// - Throws: `DispatchError`: `leaseLost` if the claim is over; `rejected` if the key may not end it.
    package func release(
        _ token: SequenceNumber, within limit: Duration
    ) async throws(DispatchError) -> Receipt {
        try await outbox.submit(.release(StoreVersion(sequence: token))).receipt(within: limit)
    }

    /// See ``Node/lease(_:within:)``.
    package func lease(
        _ text: String, locks: Bool, within limit: Duration?
    ) async throws(DispatchError) -> Lease {
        guard let name = StoreName(text) else { throw .noLeaseName(text) }
        let begun = Moment.now.monotonic
        func left() -> Duration? { limit.map { max(.zero, $0 - (Moment.now.monotonic - begun)) } }
        let handle = outbox.submit(.claim(name, locks: locks))
        let claim: StoreVersion
        do throws(DispatchError) {
            claim = StoreVersion(of: try await handle.receipt(within: limit))
        } catch {
            if error.code == .timedOut || error.code == .cancelled { giveUp(handle) }
            throw error
        }
        do throws(DispatchError) {
            var isLate = false
            while true {
                let asked = ContinuousClock.now
                let patience = min(left() ?? Self.turnPatience, Self.turnPatience)
                guard patience > .zero else { throw .notItsTurn(name, limit) }
                switch try await state(of: claim, untilHeld: true, within: patience) {
                case .held(let silenceMax):
                    // Its holder reads what the one before did.
                    guard try await applyAll(within: patience) else { continue }
                    // The sequencer heard this node when it took the question: not before it was asked. If that is long
                    // ago, most of the time for which the lease is surely held is over. The next answer comes sooner.
                    let passed = asked.duration(to: .now)
                    guard passed < silenceMax / 4 || isLate && passed < silenceMax.safely else {
                        isLate = true
                        continue
                    }
                    let lease = Lease(
                        text, claim, on: self, silenceMax: silenceMax, heardAfter: asked)
                    lease.watch()
                    return lease
                case .over: throw .leaseEnded(text)
                case .waiting, nil: continue
                }
            }
        } catch {
            _ = outbox.submit(.release(claim))
            throw error
        }
    }

    /// How long one question for its turn waits. It is asked again after that, since it may be lost with the sequencer.
    private static let turnPatience = Duration.seconds(2)
    /// How long it waits before it asks a sequencer again that did not answer.
    private static let pause = Duration.milliseconds(100)

    /// Nobody waits for a claim any more.
    private func giveUp(_ handle: DispatchHandle) {
        let outbox = outbox
        Task {
            // It may be in the log all the same.
            if let receipt = try? await handle.withdraw() {
                _ = outbox.submit(.release(StoreVersion(of: receipt)))
            }
        }
    }

    /// Asks how a claim stands.
    ///
    /// - Returns: The answer; nil if there is none yet.
    func state(
        of claim: StoreVersion, untilHeld: Bool, within patience: Duration
    ) async throws(DispatchError) -> LeaseState? {
        try await unlessLate(patience) { () async throws(NodeError) in
            let answer = try await ask(.lease(claim, untilHeld: untilHeld), patience: patience)
            if case .lease(let state) = answer.body { return state }
            return nil
        }
    }

    /// Applies what was ordered up to now.
    ///
    /// - Returns: Whether it is applied.
    private func applyAll(within patience: Duration) async throws(DispatchError) -> Bool {
        try await unlessLate(patience) { () async throws(NodeError) in
            try await wait(for: .latest, patience: patience)
        } != nil
    }

    /// Asks the sequencer something.
    ///
    /// - Returns: The answer; nil if there is none yet.
    private func unlessLate<Answer>(
        _ patience: Duration, _ question: () async throws(NodeError) -> Answer?
    ) async throws(DispatchError) -> Answer? {
        let failure: NodeError
        do throws(NodeError) {
            return try await question()
        } catch {
            failure = error
        }
        switch failure.code {
        case .cancelled: throw .cancelled
        case .closed: throw .nodeClosed
        case .timedOut: return nil
        default:
            do throws(NodeError) {
                try await Self.pause(for: min(patience, Self.pause))
            } catch {
                throw .cancelled
            }
            return nil
        }
    }
}

extension Store where State: ReplicatedState {
    /// Dispatches an action that is taken only while a lease is held.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - lease: The lease.
    /// - Returns: A handle. Its receipt throws a `DispatchError` with the code `leaseLost` if the lease was lost before the
    ///   action's turn. Then the action never takes effect.
    @discardableResult
    public func dispatch(_ action: State.Action, under lease: Lease) -> DispatchHandle {
        core.dispatch(action) { EntryRoute.of($0, under: lease) }
    }
}

extension Actions where State: ReplicatedState {
    /// Dispatches an action that is taken only while a lease is held.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - lease: The lease.
    /// - Returns: A handle, as for a store.
    @discardableResult
    public func dispatch(_ action: State.Action, under lease: Lease) -> DispatchHandle {
        dispatch(action) { EntryRoute.of($0, under: lease) }
    }
}

extension EntryRoute {
    /// - Returns: A route of an action that is taken only while a lease is held.
    fileprivate static func of(
        _ route: any ActionRoute<S>, under lease: Lease
    ) -> any ActionRoute<S> {
        let row = BatchTarget.lease(lease.claim)
        return of(route) { (entry, outbox, mayWait) throws(DispatchError) in
            outbox.submit([entry], on: [row], mayWait: mayWait)[0]
        }
    }
}

extension StoreVersion {
    /// The place of an entry.
    fileprivate init(of receipt: Receipt) {
        self.init(sequence: receipt.sequence, epoch: receipt.epoch)
    }
}

extension DispatchError {
    fileprivate static let cancelled = DispatchError(
        code: .cancelled,
        message:
            "The waiting task was cancelled, and the claim was given up. Ask for the lease again.")

    fileprivate static func noLeaseName(_ text: String) -> DispatchError {
        DispatchError(
            code: .invalidAction,
            message: """
                "\(text)" is no name for a lease. Give it 1 to 64 of a-z 0-9 . _ -, or two such parts with a slash.
                """)
    }

    fileprivate static func notItsTurn(_ name: StoreName, _ limit: Duration?) -> DispatchError {
        DispatchError(
            code: .timedOut,
            message: """
                It was not this node's turn for the lease \(name) within \(limit ?? .zero), and the claim was given up. \
                Wait longer; `conflux leases` shows who holds it.
                """)
    }

    fileprivate static func leaseEnded(_ name: String) -> DispatchError {
        DispatchError(
            code: .leaseLost,
            message: """
                The claim for the lease \(name) ended: the sequencer heard nothing of this node for too long, or somebody \
                released it. Ask for the lease again.
                """)
    }
}
