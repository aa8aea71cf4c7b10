import Conflux
import ConfluxVocabulary

/// One action that a simulated process dispatched, and the outcome that it was told.
final class DispatchRecord {
    /// A session. It includes the nonce, since a log that lost its end may give an incarnation to another
    /// process.
    struct Session: Hashable {
        var log: LogID
        var incarnation: Incarnation
        var nonce: Nonce
    }

    /// The place of an action in its session. No two actions have the same key.
    struct Key: Hashable {
        var session: Session
        var counter: UInt64
    }

    let process: Int
    /// 0, 1, 2 … within the process.
    let index: Int
    let handle: DispatchHandle
    /// Whether no store could apply it, so that it must be rejected on admission.
    var isBad = false
    /// Whether its process asked to withdraw it.
    var isWithdrawalAsked = false
    /// Its key, once it was submitted.
    var key: Key?
    /// How many sessions its process had had when it got its key.
    var session = 0
    /// The payload that was submitted; every later submission must be the same.
    var payload: [UInt8]?
    var target: Target?
    /// Its condition; nil if it has none.
    var condition: DispatchCondition?
    /// The transaction that it is part of; nil if it stands alone.
    var transaction: TransactionRecord?
    /// The claim for a lease under which it was dispatched; nil if there is none.
    var lease: StoreVersion?
    /// Whether it claims a lease.
    var isClaim = false
    /// Whether the lease is a lock.
    var isLock = false
    /// Whether it cancels a timer.
    var isCancellation = false
    /// The outcome that its process was told.
    var outcome: Outcome?

    init(process: Int, index: Int, handle: DispatchHandle) {
        self.process = process
        self.index = index
        self.handle = handle
    }

    /// Whether its process was told that it is not in the log and never will be.
    var isExcluded: Bool {
        guard case .failed(let error) = outcome else { return false }
        return error.receipt == nil && error.code != .outcomeUnknown
    }

    /// Whether its process asked to withdraw it, or anything that stands or falls with it.
    var mayBeWithdrawn: Bool {
        transaction?.records.contains(where: \.isWithdrawalAsked) ?? isWithdrawalAsked
    }

    var text: String { "action \(index) of process \(process)" }
}
