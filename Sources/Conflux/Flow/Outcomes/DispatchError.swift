import ConfluxVocabulary

/// Why a dispatch has no receipt, or a receipt without an effect.
public struct DispatchError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it is: stable, and fit for a program to decide by.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The code as it is printed.
        public let rawValue: String

        /// Makes a code.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// Never in the log; may be tried again.
        public static let rejected = Code(rawValue: "rejected")
        /// In the log, but a no-op: the state's check refused it.
        public static let refused = Code(rawValue: "refused")
        /// Whether the action is in the log can't be known any more.
        public static let outcomeUnknown = Code(rawValue: "outcomeUnknown")
        /// In the log, but whether it was refused can't be known here.
        public static let effectUnknown = Code(rawValue: "effectUnknown")
        /// In the log, but this replica of the store has stopped before it.
        public static let storeStopped = Code(rawValue: "storeStopped")
        /// In the log, but for no store: there is none, or all are frozen.
        public static let concernedNobody = Code(rawValue: "concernedNobody")
        /// The store was released, or closed, before the action's turn.
        public static let storeClosed = Code(rawValue: "storeClosed")
        /// A global dispatch found no store of its state.
        public static let noStore = Code(rawValue: "noStore")
        /// The node has as many actions under way as it may.
        public static let outboxFull = Code(rawValue: "outboxFull")
        /// The action can't be encoded, or breaks a limit.
        public static let invalidAction = Code(rawValue: "invalidAction")
        /// There is no connection to a sequencer.
        public static let notConnected = Code(rawValue: "notConnected")
        /// The action was withdrawn before it was ordered.
        public static let withdrawn = Code(rawValue: "withdrawn")
        /// The store has changed since the version that a dispatch names; it may be tried again after another look.
        public static let conflict = Code(rawValue: "conflict")
        /// The lease under which the action was dispatched is not held any more: it never takes effect.
        public static let leaseLost = Code(rawValue: "leaseLost")
        /// Middleware stopped the action: no store heard of it.
        public static let intercepted = Code(rawValue: "intercepted")
        /// The call would have to wait for the very thread that it was made on.
        public static let wouldBlock = Code(rawValue: "wouldBlock")
        /// The outcome did not come in the time that the caller gave; the action proceeds.
        public static let timedOut = Code(rawValue: "timedOut")
        /// The waiting task was cancelled; the action proceeds.
        public static let cancelled = Code(rawValue: "cancelled")

        /// The code as it is printed.
        public var description: String { rawValue }
    }

    /// What kind of failure it is.
    public let code: Code
    /// What happened and what to do, in a sentence or two.
    public let message: String
    /// The action's receipt, if it is in the log nevertheless.
    public let receipt: Receipt?
    /// What caused the failure: for a refusal, the error that the check threw.
    public let reason: (any Error)?
    /// For a ``Code/conflict`` with the version that a dispatch names: the version that the store had when the sequencer
    /// judged the action. This process may not have applied it yet.
    public let version: StoreVersion?

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - code: What kind of failure it is.
    ///   - message: What happened and what to do.
    ///   - receipt: The action's receipt, if it is in the log.
    ///   - reason: The cause.
    ///   - version: The version that the store had instead of the one that the dispatch names.
    public init(
        code: Code, message: String, receipt: Receipt? = nil, reason: (any Error)? = nil,
        version: StoreVersion? = nil
    ) {
        self.version = version
        self.code = code
        self.message = message
        self.receipt = receipt
        self.reason = reason
    }

    /// The code and the message.
    public var description: String { "\(code): \(message)" }

    /// A refusal: the check's error, and the receipt that the entry has all the same.
    package static func refused(_ reason: any Error, receipt: Receipt) -> DispatchError {
        DispatchError(
            code: .refused,
            message: """
                The state's check refused the action, which changed nothing. Correct the action, or \
                dispatch it when the state allows it. The reason: \(reason)
                """,
            receipt: receipt, reason: reason)
    }

    /// A snapshot took the place of the entry.
    package static func effectUnknown(_ receipt: Receipt) -> DispatchError {
        DispatchError(
            code: .effectUnknown,
            message: """
                The action is in the log, and the store here got a later state as a whole: whether \
                the state's check refused it is not known here. Read the state, or ask a node that \
                applied the action.
                """, receipt: receipt)
    }

    /// The store was released before the action's turn.
    package static func storeClosed<S: State>(_ state: S.Type) -> DispatchError {
        DispatchError(
            code: .storeClosed,
            message: """
                The store of \(state.title) was released before it reached the action, which \
                changed nothing. Keep the store as long as you use its actions.
                """)
    }

    /// A global dispatch reached nobody.
    static func noStore<S: State>(_ state: S.Type) -> DispatchError {
        DispatchError(
            code: .noStore,
            message: """
                No store of \(state.title) exists in this scope, so no store got the action. Make \
                one first, or dispatch in the scope that has one.
                """)
    }

    /// An event reached nobody.
    static func noHandler<E>(of event: E.Type) -> DispatchError {
        DispatchError(
            code: .noStore,
            message: """
                No store in this scope handles \(event), so no store got it. First make one whose \
                state handles it (EventHandling), or send it in the scope that has one.
                """)
    }

    /// A global dispatch passed a store over.
    static func passedOver<S: State>(_ state: S.Type) -> DispatchError {
        DispatchError(
            code: .rejected,
            message: """
                The store of \(state.title) took no part: it is being released, or it changes only \
                through its node, which takes no global actions now. Dispatch again when the node \
                is connected.
                """)
    }

    /// A replicated store can't commit an action elsewhere than on its executor.
    static func executorIsFixed<S: State>(_ state: S.Type) -> DispatchError {
        DispatchError(
            code: .rejected,
            message: """
                The store of \(state.title) is replicated: it applies the log's actions on its own executor, so \
                mode mainThread can't choose another one, and the action was not sent. Make the store with the \
                executor .mainThread, or dispatch in another mode.
                """)
    }

    /// The action's own dispatcher withdrew it.
    package static let withdrawn = DispatchError(
        code: .withdrawn,
        message: """
            The action was withdrawn before it was ordered: it is not in the log and never will \
            be. Dispatch it again if it is wanted after all.
            """)

    /// A store can't take part in a transaction.
    static let cannotTakePart = DispatchError(
        code: .rejected,
        message: """
            A store of the transaction was released, or changes only through its node, so the \
            transaction has no effect. Use stores that no node replicates.
            """)

    /// Middleware stopped it.
    static let intercepted = DispatchError(
        code: .intercepted,
        message: """
            Middleware stopped the action, so no store got it. Dispatch an action that the \
            middleware lets pass, or end its registration.
            """)

    /// A synchronous dispatch from inside a commit or an observer.
    static let wouldBlock = DispatchError(
        code: .wouldBlock,
        message: """
            A dispatch in mode sync from inside a commit or an observer would wait for itself, so it was \
            not made. Dispatch in another mode there.
            """)

    /// - Parameters:
    ///   - limit: How long the caller waited.
    ///   - address: The address of the sequencer that the action goes to; nil if that is not known.
    /// - Returns: The error.
    static func timedOut(after limit: Duration, awaiting address: String?) -> DispatchError {
        guard let address else {
            return DispatchError(
                code: .timedOut,
                message: """
                    The outcome did not come within \(limit), so it is not known yet. The action continues; wait \
                    for its receipt again to learn how it ended.
                    """)
        }
        return DispatchError(
            code: .timedOut,
            message: """
                No receipt came within \(limit): the sequencer at \(address) has not confirmed the action, or a \
                store here has not applied it yet. The action continues; wait for its receipt again to learn \
                how it ended.
                """)
    }

    static func withdrawalTimedOut(after limit: Duration, awaiting address: String) -> DispatchError
    {
        DispatchError(
            code: .timedOut,
            message: """
                The sequencer at \(address) did not confirm the withdrawal within \(limit), so it is not known yet \
                whether the action was ordered before. The withdrawal continues; wait for the receipt to learn \
                how it ended.
                """)
    }

    static let cancelled = DispatchError(
        code: .cancelled,
        message: """
            The wait was cancelled. The action continues; wait for its receipt again to learn how it \
            ended.
            """)
}
