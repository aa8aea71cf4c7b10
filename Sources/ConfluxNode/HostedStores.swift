import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import Synchronization

/// The stores that a node hosts and the states that it bridges, by name. A name that is opened
/// twice gives the same store.
///
/// Stores are held weakly: the last release of a store ends its hosting.
final class HostedStores: Sendable {
    private final class Entry {
        /// nil while it is being opened, and for a state.
        weak var store: AnyObject?
        /// Says that nothing changes the store any more. Called at most once, when the node ends.
        var end: (@Sendable () -> Void)?
        var isOpen = false
        var waiters: [OneShot<Bool>] = []
    }

    /// The answer to a request to open a name.
    enum Claim {
        /// The name is open. A state has no store.
        case open(AnyObject?)
        /// Another caller is opening it: wait, then claim again.
        case opening
        /// The caller opens it, and reports the result.
        case mine
    }

    // Entries are used only under the mutex.
    private struct Table: @unchecked Sendable {
        var entries: [HostingSubject: Entry] = [:]
        var hasEnded = false
    }

    private let table = Mutex(Table())

    var names: [StoreName] {
        table.withLock { table in
            table.entries.compactMap { $0.value.isOpen ? $0.key.store : nil }.sorted()
        }
    }

    func claim(_ subject: HostingSubject) -> Claim {
        // Written under the lock, and read after that by this thread alone.
        nonisolated(unsafe) var claim = Claim.mine
        table.withLock { table in
            if let entry = table.entries[subject] {
                if !entry.isOpen {
                    claim = .opening
                    return
                }
                let store = entry.store
                if store != nil || subject.store == nil {
                    claim = .open(store)
                    return
                }
            }
            table.entries[subject] = Entry()
        }
        return claim
    }

    /// Waits until the caller that opens it is done, or the waiting task is cancelled.
    ///
    /// - Returns: Whether that was so within the time.
    func waitForOpening(of subject: HostingSubject, within limit: Duration) async -> Bool {
        let turn = OneShot<Bool>()
        let isWaiting = table.withLock { table in
            guard let entry = table.entries[subject], !entry.isOpen else { return false }
            entry.waiters.append(turn)
            return true
        }
        guard isWaiting else { return true }
        return await turn.receive(onCancel: true, timeout: limit, onTimeout: false)
    }

    /// Ends a claim: the caller has opened it, or could not.
    ///
    /// - Parameters:
    ///   - subject: What was claimed.
    ///   - isOpen: Whether it is open.
    ///   - store: The store; nil for a state.
    ///   - end: Called when the node ends while the store is hosted; at once, if it has ended.
    func settle(
        _ subject: HostingSubject, isOpen: Bool, _ store: AnyObject? = nil,
        whenNodeEnds end: (@Sendable () -> Void)? = nil
    ) {
        nonisolated(unsafe) let store = store  // handed over under the mutex
        let (waiters, isLate) = table.withLock { table in
            guard let entry = table.entries[subject] else { return ([OneShot<Bool>](), false) }
            defer { entry.waiters = [] }
            entry.store = store
            entry.end = end
            entry.isOpen = isOpen
            if !isOpen { table.entries[subject] = nil }
            return (entry.waiters, isOpen && table.hasEnded)
        }
        for waiter in waiters { waiter.send(true) }
        if isLate { end?() }
    }

    /// The node has ended: nothing changes its stores any more. A further call does nothing.
    func endAll() {
        let ends = table.withLock { table in
            defer { table.hasEnded = true }
            return table.hasEnded ? [] : table.entries.values.compactMap(\.end)
        }
        for end in ends { end() }
    }

    /// Removes a store that is no longer hosted, or a state that is no longer bridged.
    ///
    /// - Parameters:
    ///   - subject: The store's name, or the state's.
    ///   - store: The store to remove. A younger store of the same name stays. nil for a state, and if
    ///     the store was released already.
    ///   - whenRemoved: Called before anybody can claim the name again. So what it posts comes before
    ///     what the next opener posts, and the next opener's route replaces one that it sets. It must
    ///     do nothing else.
    /// - Returns: Whether it was hosted or bridged.
    @discardableResult
    func remove(
        _ subject: HostingSubject, _ store: AnyObject? = nil, whenRemoved: () -> Void
    ) -> Bool {
        nonisolated(unsafe) let store = store  // compared under the mutex
        return table.withLock { table in
            guard let entry = table.entries[subject], entry.isOpen, entry.store === store else {
                return false
            }
            table.entries[subject] = nil
            whenRemoved()
            return true
        }
    }

    /// The name under which a store is hosted.
    func name(of store: AnyObject) -> StoreName? {
        nonisolated(unsafe) let store = store  // compared under the mutex
        return table.withLock { table in
            table.entries.first { $0.value.isOpen && $0.value.store === store }?.key.store
        }
    }
}

extension HostingSubject {
    /// The store's name; nil for a state.
    fileprivate var store: StoreName? {
        if case .store(let name) = self { name } else { nil }
    }
}
