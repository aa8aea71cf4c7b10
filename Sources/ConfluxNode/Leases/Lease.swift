import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import Synchronization

/// A lease that this process holds: of all processes, only one holds the lease of a name at a time.
///
/// ```swift
/// let lease = try await node.lease("cashier", within: .seconds(10))
/// try await till.dispatch(.open(by: name), under: lease).receipt()
/// try await lease.release()
/// ```
///
/// It ends when you release it, when this node leaves, or when the sequencer has heard nothing of the node for too long
/// (`conflux sequencer --silence`, 10 seconds by default). Then the next process in line holds it. A process that was
/// stopped meanwhile may not know yet, and act. So dispatch what must not happen after the end by
/// `Store.dispatch(_:under:)`: the sequencer compares, and takes no such action later.
///
/// A lease that you drop without releasing it is released.
public final class Lease: Sendable {
    private struct Standing {
        var isOver = false
        /// Until then, the sequencer can't have given the lease to another. *Use*: a clock that goes on while the machine
        /// sleeps.
        var heldUntil: ContinuousClock.Instant
        var waiters: [OneShot<Bool>] = []
    }

    /// The name.
    public let name: String
    /// The number of the entry that claimed it, which rises from one holder to the next. Other systems can refuse what
    /// comes with a lower token than they have seen.
    public var token: SequenceNumber { claim.sequence }

    /// The number and the epoch of that entry.
    let claim: StoreVersion
    /// After so long without a word of this node, the sequencer gives the lease to another.
    package let silenceMax: Duration
    private let core: NodeCore
    private let state: Mutex<Standing>

    init(
        _ name: String, _ claim: StoreVersion, on core: NodeCore, silenceMax: Duration,
        heardAfter asked: ContinuousClock.Instant
    ) {
        (self.name, self.claim, self.core, self.silenceMax) = (name, claim, core, silenceMax)
        state = Mutex(Standing(heldUntil: asked + silenceMax.safely))
    }

    deinit { endClaim() }

    /// Whether it is held, as far as this process can know. It is false before another process can hold the lease, if the
    /// clocks of both hosts run at about the same speed.
    public var isHeld: Bool {
        // A node that leaves closes its outbox before it says so.
        !core.outbox.isClosedForActions
            && state.withLock { !$0.isOver && ContinuousClock.now < $0.heldUntil }
    }

    /// Waits until it is lost or released.
    ///
    /// It returns at once if the waiting task is cancelled.
    public func waitUntilOver() async {
        let over = OneShot<Bool>()
        let isOver = state.withLock { state in
            if !state.isOver { state.waiters.append(over) }
            return state.isOver
        }
        guard !isOver else { return }
        _ = await over.receive(onCancel: false)
        state.withLock { $0.waiters.removeAll { $0 === over } }
    }

    /// Ends it, so that the next process in line holds it.
    ///
    /// - Parameter limit: How long to wait for the sequencer; nil to wait as long as it takes. The release continues after
    ///   it.
    /// - Throws: `DispatchError`, if the sequencer has not confirmed it.
    public func release(within limit: Duration? = nil) async throws(DispatchError) {
        guard let handle = endClaim() else { return }
        do throws(DispatchError) {
            try await handle.receipt(within: limit)
        } catch {
            // It was over already.
            if error.code != .leaseLost { throw error }
        }
    }

    /// Gives the claim up, once.
    @discardableResult
    private func endClaim() -> DispatchHandle? {
        guard end() else { return nil }
        return core.outbox.submit(.release(claim))
    }

    /// - Returns: Whether it was not over before.
    private func end() -> Bool {
        let waiters = state.withLock { state -> [OneShot<Bool>]? in
            guard !state.isOver else { return nil }
            state.isOver = true
            return exchange(&state.waiters, with: [])
        }
        for waiter in waiters ?? [] { waiter.send(true) }
        return waiters != nil
    }

    // MARK: Watching

    /// The longest time between two questions.
    private static let pause = Duration.seconds(1)

    /// Asks the sequencer again and again whether the lease is held. Each answer shows that the sequencer heard this node
    /// after the question was sent.
    func watch() {
        let (core, claim, silenceMax) = (core, claim, silenceMax)
        let pause = min(Self.pause, silenceMax / 8)
        Task { [weak self] in
            while let left = self?.timeLeft {
                let asked = ContinuousClock.now
                do throws(DispatchError) {
                    switch try await core.state(
                        of: claim, untilHeld: false, within: min(left, silenceMax / 4))
                    {
                    case .held(let silenceMax): self?.renew(until: asked + silenceMax.safely)
                    case .waiting, .over:
                        // Perhaps the log has lost its end, and has the claim all the same.
                        self?.endClaim()
                        return
                    case nil: break
                    }
                } catch {
                    // The node has left.
                    _ = self?.end()
                    return
                }
                try? await NodeCore.pause(for: min(pause, self?.timeLeft ?? .zero))
            }
        }
    }

    private func renew(until end: ContinuousClock.Instant) {
        state.withLock { $0.heldUntil = max($0.heldUntil, end) }
    }

    /// For how long it is surely held; nil if it is over. A lease that ends by time is given up, since the sequencer may
    /// hear of this node again, and give the lease to nobody.
    private var timeLeft: Duration? {
        let (isOver, left) = state.withLock {
            ($0.isOver, ContinuousClock.now.duration(to: $0.heldUntil))
        }
        if isOver { return nil }
        if left > .zero { return left }
        endClaim()
        return nil
    }
}

extension Duration {
    /// A little less than a time of another host, whose clock may run faster.
    var safely: Duration { self * 7 / 8 }
}

extension Outbox {
    /// Appends an entry that claims or gives up a lease. A full outbox takes what gives a lease up: nobody would do it
    /// again.
    package func submit(_ request: LeaseRequest) -> DispatchHandle {
        let row = BatchTarget(target: .leases, schemaVersion: 1, coding: .compact)
        let needsRoom = if case .claim = request { true } else { false }
        return submit(
            [(row, request.payload)], on: [], mayWait: false, needsRoom: needsRoom)[0]
    }
}
