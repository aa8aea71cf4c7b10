import Conflux
import ConfluxVocabulary
import Synchronization

/// Consecutive actions that a store has dealt with, of one commit.
///
/// The lane fills it, and then it is handed over. Actions become JSON only if somebody follows actions.
// Sendable: the lane alone changes it, before it is handed over; `written` is guarded.
final class CommittedRun<S: ReplicatedState>: ActionBodies, @unchecked Sendable {
    private var actions: [S.Action] = []
    private(set) var contexts: [ActionContext] = []
    /// Why some of them were refused, by their index.
    private(set) var refusals: [Int: String] = [:]
    private var reasonBytes = 0
    /// About how many bytes an action's payload has.
    private let payloadBytesEach: Int
    private let coder: ActionCoder<S.Action>
    private let written = Mutex<[Int: [UInt8]]>([:])

    /// About how many bytes an action takes besides its payload.
    private static var actionBytes: Int { 128 }

    init(_ coder: ActionCoder<S.Action>, payloadBytesEach: Int) {
        (self.coder, self.payloadBytesEach) = (coder, payloadBytesEach)
    }

    var count: Int { contexts.count }
    var committedCount: Int { contexts.count - refusals.count }

    func append(_ action: S.Action, _ context: ActionContext, _ refusal: (any Error)?) {
        if let refusal {
            let reason = "\(refusal)"
            refusals[count] = reason
            reasonBytes += reason.utf8.count
        }
        actions.append(action)
        contexts.append(context)
    }

    // MARK: Bodies

    var byteCountEach: Int { payloadBytesEach + reasonBytes / max(1, count) + Self.actionBytes }

    /// The action; with the reason, if it was refused. `null` stands for an action that has no form in JSON.
    func body(at index: Int) -> [UInt8] {
        written.withLock { written in
            if let body = written[index] { return body }
            let action = (try? coder.encode(actions[index], as: .json)) ?? Array("null".utf8)
            let body =
                refusals[index].map { reason in
                    Array(#"{"action":"#.utf8) + action
                        + Array(#","reason":\#(JSONValue.string(reason))}"#.utf8)
                } ?? action
            written[index] = body
            return body
        }
    }

    func forget(_ index: Int) { written.withLock { $0[index] = nil } }
}
