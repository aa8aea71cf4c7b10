import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import Synchronization

extension Node {
    /// Finds out what became of an action that this process, or another one, dispatched.
    ///
    /// A caller that can't wait any longer keeps the token of the handle, and asks later: after a restart, too, and from
    /// any other process. The node reads the log from the token's place on, on a connection of its own. This takes the
    /// longer, the more was logged since. The answer is never wrong: what the log does not show is open, or unknown.
    ///
    /// ```swift
    /// let handle = orders.dispatch(.place(order))
    /// do {
    ///     try await handle.receipt(within: .seconds(2))
    /// } catch where error.code == .timedOut {
    ///     if let token = handle.token { notebook.write(token.description) }
    /// }
    /// // Later, in another process:
    /// let receipt = try await node.outcome(of: token, within: .seconds(10))
    /// ```
    ///
    /// - Parameters:
    ///   - token: The token of the action's handle.
    ///   - limit: How long to wait; nil to wait until it is decided, once the log is connected.
    /// - Returns: The action's receipt: the action is in the log. Whether it was refused is another matter.
    /// - Throws: `DispatchError`: `rejected` if the action is not in the log and never will be: it was rejected or
    ///   withdrawn; `timedOut` after `limit`, while it may still come, or stand behind what was read; `outcomeUnknown` if
    ///   the log no longer tells: it has discarded the entries, has lost its end, or is another one; `notConnected` if
    ///   the log can't be read; `cancelled`.
    public func outcome(
        of token: DispatchToken, within limit: Duration? = nil
    ) async throws(DispatchError) -> Receipt {
        try await core.outcome(of: token, within: limit)
    }
}

extension NodeSettings {
    /// The settings of another node of this process, which only reads the log.
    var ofReader: NodeSettings {
        var settings = self
        // This node has these.
        (settings.name, settings.crashJournal) = (nil, nil)
        return settings
    }
}

extension NodeCore {
    /// See ``Node/outcome(of:within:)``.
    package func outcome(
        of token: DispatchToken, within limit: Duration?
    ) async throws(DispatchError) -> Receipt {
        let begun = Moment.now.monotonic
        func left() -> Duration? { limit.map { max(.zero, $0 - (Moment.now.monotonic - begun)) } }
        let search = Mutex(OutcomeSearch(for: token))
        let found = OneShot<Result<Receipt, DispatchError>?>()
        let reader: NodeCore
        do throws(NodeError) {
            reader = try NodeCore(
                address: address, settings: settings.ofReader, role: .observer, scope: Scope(),
                tap: { commit in
                    if let result = search.withLock({ $0.take(commit) }) { found.send(result) }
                })
            try await reader.connected(within: left() ?? settings.connectTimeout)
        } catch {
            throw .notRead(error)
        }
        defer { reader.leave(timeout: .zero) }
        guard let link = await reader.linkStatus() else { throw .notRead(.closed) }
        guard link.log == token.log else { throw .otherLog(than: token) }
        // A sequencer that was superseded, and does not know it yet, may lack the entry.
        if link.epoch >= token.since.epoch, link.last < token.since.sequence {
            throw .changedHistory(of: token)
        }
        // A reader that is refused, or can't go on, finds nothing more.
        Task {
            await reader.ended()
            found.send(.failure(.notRead(.closed)))
        }
        reader.follow(from: token.since.sequence)
        let result = await found.receive(
            onCancel: .failure(.notRead(.cancelled)), timeout: left(), onTimeout: .some(nil))
        guard let result else { throw search.withLock { $0.undecided(within: limit) } }
        return try result.get()
    }
}
