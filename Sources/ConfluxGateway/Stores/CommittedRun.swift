import Conflux
import ConfluxVocabulary
import Synchronization

/// The actions of one commit that a store has dealt with, and copies of its state after some of them.
///
/// The lane fills it, and then it is handed over. Actions become JSON only if somebody follows actions.
// Sendable: the lane alone changes it, before it is handed over; `written` is guarded.
final class CommittedRun<S: ReplicatedState>: ActionBodies, @unchecked Sendable {
    private(set) var actions: [S.Action] = []
    private(set) var contexts: [ActionContext] = []
    /// Why some of them were refused, by their index.
    private(set) var refusals: [Int: String] = [:]
    /// The state after some of them that were not refused, with their indices, ascending.
    private(set) var copies: [(index: Int, snapshot: S.Snapshot)] = []
    var payloadBytes = 0
    private let coder: ActionCoder<S.Action>
    private let written = Mutex<[Int: [UInt8]]>([:])

    /// About how many bytes an action takes besides its payload.
    private static var actionBytes: Int { 128 }

    init(_ coder: ActionCoder<S.Action>) { self.coder = coder }

    var count: Int { contexts.count }
    var committedCount: Int { contexts.count - refusals.count }

    /// Whether the last action that was not refused has no copy.
    var isOwed: Bool {
        guard let last = contexts.indices.last(where: { refusals[$0] == nil }) else { return false }
        return copies.last?.index != last
    }

    /// Appends an action.
    ///
    /// - Parameters:
    ///   - action: The action.
    ///   - context: Its place.
    ///   - refusal: Why it was refused, if it was.
    ///   - copy: Copies the state after it; nil to make no copy.
    func append(
        _ action: S.Action, _ context: ActionContext, _ refusal: (any Error)?,
        _ copy: (() -> S.Snapshot)?
    ) {
        if let refusal {
            refusals[count] = "\(refusal)"
        } else if let copy {
            copies.append((count, copy()))
        }
        actions.append(action)
        contexts.append(context)
    }

    // MARK: Bodies

    var byteCountEach: Int { payloadBytes / max(1, count) + Self.actionBytes }

    /// The action; with the reason, if it was refused. `null` stands for an action that can't be written as JSON.
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
}
