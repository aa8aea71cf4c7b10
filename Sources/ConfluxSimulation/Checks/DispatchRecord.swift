import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// One action that a simulated process dispatched, and what it was told of it.
final class DispatchRecord {
    /// A session, by its nonce, too: a log that lost its end may give an incarnation
    /// to another process.
    struct Session: Hashable {
        var log: LogID
        var incarnation: Incarnation
        var nonce: Nonce
    }

    /// Where an action stands among those of its session: no two actions have the same.
    struct Key: Hashable {
        var session: Session
        var counter: UInt64
    }

    let process: Int
    /// 0, 1, 2 … within the process.
    let index: Int
    let handle: DispatchHandle
    /// Whether nobody could apply it: it must be rejected at the door.
    var isBad = false
    /// Whether its process wants it not to happen.
    var isWithdrawalAsked = false
    /// Its place, once it was submitted.
    var key: Key?
    /// How many sessions its process had had when it got its place.
    var session = 0
    /// What was submitted; every later submission must be the same.
    var payload: [UInt8]?
    var target: Target?
    /// What its process was told.
    var outcome: Outcome?

    init(process: Int, index: Int, handle: DispatchHandle) {
        self.process = process
        self.index = index
        self.handle = handle
    }

    /// Whether its process was told that it is not, and will not be, in the log.
    var isExcluded: Bool {
        guard case .failed(let error) = outcome else { return false }
        return error.receipt == nil && error.code != .outcomeUnknown
    }

    var text: String { "action \(index) of process \(process)" }
}
