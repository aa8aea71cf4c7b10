import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker

/// Something about a store, an entry or the sequencer that an operator decides, and that the sequencer does if the
/// gateway's key may administer it. The entry in the log has the name of that key.
///
/// | request | what it does |
/// |---|---|
/// | `{"freeze":STORE}`, `{"thaw":STORE}` | as `conflux freeze` and `conflux thaw` |
/// | `{"drop":STORE}` | as `conflux drop` |
/// | `{"skip":N,"target":TARGET}` | as `conflux log skip` |
/// | `{"handOver":ADDRESS}`, `{"handOver":null}` | as `conflux handover` |
enum Decision: Sendable {
    case freeze(StoreName, Bool)
    case drop(StoreName)
    case skip(SequenceNumber, Target)
    case handOver(to: String?)

    static let bytesMax = 4 << 10

    /// Reads a request.
    ///
    /// - Throws: What is wrong with it.
    init(json: [UInt8]) throws(Problem) {
        guard let object = (try? JSONValue(json: json))?.object else {
            throw .invalid("The decision is no JSON object.")
        }
        let members = Set(object.map(\.key))
        let store = { (key: String) in object[key]?.string.flatMap { StoreName($0) } }
        switch members {
        case ["freeze"]: self = .freeze(try Self.need(store("freeze")), true)
        case ["thaw"]: self = .freeze(try Self.need(store("thaw")), false)
        case ["drop"]: self = .drop(try Self.need(store("drop")))
        case ["skip", "target"]:
            guard case .integer(let number)? = object["skip"],
                let sequence = UInt64(number.description),
                let target = object["target"]?.string.flatMap({ Target($0) })
            else { throw .invalid("'skip' is the number of an entry, and 'target' its target.") }
            self = .skip(SequenceNumber(sequence), target)
        case ["handOver"]:
            guard object["handOver"] == .null || object["handOver"]?.string != nil else {
                throw .invalid("'handOver' is the address of a standby, or null.")
            }
            self = .handOver(to: object["handOver"]?.string)
        default:
            throw .invalid(
                "A decision is one of freeze, thaw, drop, skip with target, and handOver.")
        }
    }

    private static func need(_ store: StoreName?) throws(Problem) -> StoreName {
        guard let store else { throw .invalid("The name of a store is STATE/INSTANCE.") }
        return store
    }

    /// Has the sequencer do it.
    ///
    /// - Parameters:
    ///   - node: The gateway's node.
    ///   - patience: How long to wait.
    /// - Returns: The members of the answer.
    /// - Throws: Why it was not done.
    func make(by node: Node, patience: Duration) async throws(CommandFailure) -> JSONObject {
        do throws(NodeError) {
            switch self {
            case .freeze(let store, let isFrozen):
                let life = try await Self.life(of: store, node, patience)
                return try await Self.decided(.frozen(store, life: life, isFrozen), node, patience)
            case .drop(let store):
                let life = try await Self.life(of: store, node, patience)
                return try await Self.decided(.dropped(store, life: life), node, patience)
            case .skip(let sequence, let target):
                return try await Self.decided(.skipped(sequence, target), node, patience)
            case .handOver(let address):
                let answer = try await node.core.ask(.handOver(to: address), patience: patience)
                if case .handingOver(let successor) = answer.body {
                    return JSONObject(["to": successor])
                }
            }
        } catch {
            throw CommandFailure(error)
        }
        throw Connection.unfit
    }

    /// The life is named, so that a repeated request can't affect a later one.
    private static func life(
        of store: StoreName, _ node: Node, _ patience: Duration
    ) async throws(NodeError) -> SequenceNumber {
        let stores = try await node.sequencerStatus(patience: patience).stores
        guard let life = stores.first(where: { $0.store == store })?.life else {
            throw NodeError(
                code: .notHosted, message: "There is no store \(store). It may have been dropped.")
        }
        return life
    }

    private static func decided(
        _ goal: Wait.Goal, _ node: Node, _ patience: Duration
    ) async throws(NodeError) -> JSONObject {
        JSONObject(["sequence": try await node.core.wait(for: goal, patience: patience)])
    }
}
