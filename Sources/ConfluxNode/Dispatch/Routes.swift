import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import Foundation

/// Sends the actions that are dispatched to a store or a state through a node's outbox to the log.
package final class OutboxRoute<S: BridgedState>: ActionRoute {
    private let outbox: Outbox
    private let aim: Outbox.Aim
    private let coder: ActionCoder<S.Action>
    private let coding: PayloadCoding
    /// The quick coding of the actions; nil if they have none.
    private let quick: QuickCoding<S.Action>?

    package init(outbox: Outbox, target: Target) {
        self.outbox = outbox
        // The store's life is not known yet. Zero stands for the life at admission.
        aim = Outbox.Aim(
            BatchTarget(
                target: target, schemaVersion: UInt32(clamping: S.schemaVersion),
                coding: S.coding))
        coder = ActionCoder(sizeBytesMax: outbox.limits.payloadBytesMax)
        coding = S.coding
        quick = coding == .compact ? coder.quick : nil
    }

    /// Whether the node takes no more actions.
    var isClosed: Bool { outbox.isClosedForActions }

    /// Whether the route leads to this outbox.
    func leads(to other: Outbox) -> Bool { outbox === other }

    func mean(_ life: SequenceNumber) {
        outbox.mean(life, by: aim)
    }

    package func submit(_ action: S.Action, mayWait: Bool) -> DispatchHandle {
        if let quick, let handle = submit(action, quick, mayWait: mayWait) { return handle }
        do throws(CodingFailure) {
            return outbox.submit(aim, try coder.encode(action, as: coding), mayWait: mayWait)
        } catch {
            return DispatchHandle(
                .failed(
                    DispatchError(
                        code: .invalidAction,
                        message: """
                            The action of \(S.name) can't be encoded, so it was not sent. Dispatch one \
                            that can: \(error)
                            """,
                        reason: error)))
        }
    }
}

extension OutboxRoute {
    /// Encodes an action on this thread's stack and copies it into the outbox, without any
    /// allocation.
    ///
    /// - Returns: nil if the action is too large for this, or can't be encoded.
    private func submit(
        _ action: S.Action, _ quick: QuickCoding<S.Action>, mayWait: Bool
    ) -> DispatchHandle? {
        withUnsafeTemporaryAllocation(byteCount: QuickCodingLimits.bytesMax, alignment: 8) {
            buffer -> DispatchHandle? in
            guard let count = quick.write(action, to: buffer), count <= coder.sizeBytesMax else {
                return nil
            }
            return outbox.submit(
                aim, UnsafeRawBufferPointer(rebasing: buffer[..<count]), mayWait: mayWait)
        }
    }
}

/// Fails dispatches to a store or a state that is no longer hosted: they would change it only here.
package final class ClosedRoute<S: State>: ActionRoute {
    private let error: DispatchError
    /// Whether the store or the state was stopped by an error, rather than closed.
    let isStopped: Bool

    /// Makes a route for a store that the node was told to close.
    package init(_ name: StoreName) {
        isStopped = false
        error = DispatchError(
            code: .storeClosed,
            message: """
                \(name) is no longer hosted by this node, so the action was not sent. \
                Open the store again.
                """)
    }

    /// Makes a route for a store or a state that could not be opened again.
    init(stoppedBy reason: NodeError) {
        isStopped = true
        error = DispatchError(
            code: .storeStopped, message: "The action was not sent: \(reason.message)",
            reason: reason)
    }

    package func submit(_ action: S.Action, mayWait: Bool) -> DispatchHandle {
        DispatchHandle(.failed(error))
    }
}

/// Marks the node's own threads. They empty the outbox, so they must not wait for room in it.
enum NodeThread {
    /// The thread itself. A task that is begun on it inherits the value, but runs on another
    /// thread.
    @TaskLocal private static var owner: ObjectIdentifier?

    static var isCurrent: Bool { owner.map { $0 == ObjectIdentifier(Thread.current) } ?? false }

    static func run<Result>(_ body: () -> Result) -> Result {
        let thread = Thread.current
        defer { withExtendedLifetime(thread) {} }
        return $owner.withValue(ObjectIdentifier(thread), operation: body)
    }
}
