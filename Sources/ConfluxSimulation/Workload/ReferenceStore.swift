import Conflux
import ConfluxVocabulary

/// The reference for a store: applies the entries of the log one by one, by the simplest means. It knows no
/// node, position or feed.
protocol ReferenceStore: AnyObject {
    /// Begins with a state of a schema version.
    func begin(with bytes: Bytes, version: UInt32)
    /// Applies an entry.
    ///
    /// - Returns: Whether it had an effect: false if the state's check refused it, or its payload is not one
    ///   of the state's actions.
    func apply(_ payload: Bytes, _ coding: PayloadCoding, _ context: ActionContext) -> Bool
    /// What is wrong with the state after the last entry that had an effect, by the program's own invariant; nil if
    /// nothing is.
    var fault: String? { get }
    /// The digest of the canonical encoding.
    var digest: Digest { get }
}

final class TypedReferenceStore<S: ReplicatedState>: ReferenceStore {
    private let name: StoreName
    private var core: StoreCore<S>
    private let coder = ActionCoder<S.Action>(sizeBytesMax: 1 << 20)
    private let invariant: (@Sendable (S) -> String?)?
    private(set) var fault: String?

    init(_ name: StoreName, invariant: (@Sendable (S) -> String?)? = nil) {
        self.name = name
        self.invariant = invariant
        core = Self.makeCore()
    }

    private static func makeCore() -> StoreCore<S> {
        StoreCore(
            state: S(), mutations: S.mutations, executor: .immediate, scope: Scope(), seed: 0)
    }

    func begin(with bytes: Bytes, version: UInt32) {
        core = Self.makeCore()
        do {
            let snapshot = try S.snapshot(from: bytes, version: Int(version))
            core.restore(snapshot, at: .zero) { _ in }
        } catch {
            preconditionFailure("the first state of \(name) can't be decoded: \(error)")
        }
    }

    func apply(_ payload: Bytes, _ coding: PayloadCoding, _ context: ActionContext) -> Bool {
        let action: S.Action
        do {
            action = try coder.decode(payload, as: coding)
        } catch {
            return false
        }
        // Written before `deliver` returns: the executor is the immediate one.
        nonisolated(unsafe) var hadEffect = true
        core.deliver([OrderedAction(action: action, context: context)]) { report in
            hadEffect = report.refusals.isEmpty
        }
        if hadEffect, let invariant { judge(by: invariant, after: action) }
        return hadEffect
    }

    private func judge(by invariant: @escaping @Sendable (S) -> String?, after action: S.Action) {
        // Written before `inspect` returns: the executor is the immediate one.
        nonisolated(unsafe) var fault: String?
        core.inspect { state, _ in
            fault = state.flatMap(invariant).map { "after \(action): \($0)" }
        }
        self.fault = fault
    }

    var digest: Digest { Digest(of: encodedState(of: core)) }
}
