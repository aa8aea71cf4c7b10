import ConfluxVocabulary

/// Middleware that writes a line for each step: what is dispatched, committed, changed and emitted.
///
/// ```swift
/// Scope.current.use(ActionLogger { print($0) })
/// // 1 dispatch Counter increment() to counter
/// // 1 commit 7 in Counter counter: increment()
/// // 1 done
/// ```
public struct ActionLogger: Middleware {
    private let write: @Sendable (String) -> Void

    /// Makes a logger.
    ///
    /// - Parameter write: Gets each line, without a line break, on the thread of the step. Several
    ///   threads may call it at once.
    public init(_ write: @escaping @Sendable (String) -> Void) {
        self.write = write
    }

    /// Writes what is dispatched, and lets it pass.
    public func willDispatch<S: State>(_ dispatch: DispatchedAction<S>) -> Passage<S.Action> {
        let target = dispatch.store?.description ?? "every \(S.title)"
        write(
            "\(dispatch.id) dispatch \(Self.text(dispatch.action)) to \(target)\(Self.said(dispatch.label))"
        )
        return .pass
    }

    /// Writes how a dispatch ended.
    public func didDispatch<S: State>(
        _ dispatch: DispatchedAction<S>, result: Result<Receipt, DispatchError>
    ) {
        switch result {
        case .success(let receipt) where receipt.log != nil:
            write("\(dispatch.id) done as entry \(receipt.sequence)")
        case .success: write("\(dispatch.id) done")
        case .failure(let error): write("\(dispatch.id) failed: \(error)")
        }
    }

    /// Writes what a store has committed, or refused.
    public func didCommit<S: State>(_ commit: CommittedAction<S>, refusal: (any Error)?) {
        let id = commit.id.map { "\($0) " } ?? ""
        let verb = refusal == nil ? "commit" : "refuse"
        let reason = refusal.map { ": \($0)" } ?? ""
        write(
            "\(id)\(verb) \(commit.context.sequence) in \(commit.store): \(Self.text(commit.action))\(reason)"
        )
    }

    /// Writes what a storage's commit did.
    public func didChange<S: State>(_ commit: CommittedAction<S>, _ change: StorageChange) {
        let id = commit.id.map { "\($0) " } ?? ""
        guard let keyPath = change.keyPath else {
            return write("\(id)replace in \(commit.store): \(change.new)")
        }
        write("\(id)change \(keyPath) in \(commit.store): \(change.old) to \(change.new)")
    }

    /// Writes what was emitted.
    public func didEmit(
        _ activity: any Sendable, from store: StoreIdentity, label: DispatchLabel
    ) {
        write("emit \(activity) from \(store)\(Self.said(label))")
    }

    /// Writes what is run.
    public func willPerform(_ label: DispatchLabel, for store: StoreIdentity) {
        write("perform for \(store)\(Self.said(label))")
    }

    private static func text<Action>(_ action: Action) -> String {
        // A function has no description of its own. Its label describes it.
        action is any FunctionAction ? "a change" : String(describing: action)
    }

    private static func said(_ label: DispatchLabel?) -> String {
        guard let label else { return "" }
        let words = [label.name, label.description].filter { !$0.isEmpty }
        let said = words.isEmpty ? "" : ": " + words.joined(separator: ", ")
        return "\(said) (\(label.file):\(label.line) \(label.function))"
    }
}

/// An action that is a function.
protocol FunctionAction {}

extension StorageCommit: FunctionAction {}
