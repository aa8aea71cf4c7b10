import Conflux
import Synchronization

/// The stores that a node hosts, by name, so that a name opened twice gives the same store.
///
/// Stores are held weakly: the last release of a store ends its hosting.
final class HostedStores: Sendable {
    private final class Entry {
        /// nil while it is being opened.
        weak var store: AnyObject?
        var isOpen = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    /// What becomes of a wish to open a name.
    enum Claim {
        /// It is open.
        case open(AnyObject)
        /// Somebody opens it: wait, then claim again.
        case opening
        /// The caller opens it, and says how that ended.
        case mine
    }

    // Entries are touched under the mutex alone.
    private struct Table: @unchecked Sendable {
        var entries: [StoreName: Entry] = [:]
        var bridges: Set<Name> = []
    }

    private let table = Mutex(Table())

    var names: [StoreName] {
        table.withLock { $0.entries.filter { $0.value.isOpen }.keys.sorted() }
    }

    func claim(_ name: StoreName) -> Claim {
        // Written under the lock and read after it, by this thread alone.
        nonisolated(unsafe) var claim = Claim.mine
        table.withLock { table in
            if let entry = table.entries[name] {
                if !entry.isOpen {
                    claim = .opening
                    return
                }
                if let store = entry.store {
                    claim = .open(store)
                    return
                }
            }
            table.entries[name] = Entry()
        }
        return claim
    }

    /// Waits until whoever opens the name is done.
    func waitForOpening(of name: StoreName) async {
        await withCheckedContinuation { continuation in
            let isWaiting = table.withLock { table in
                guard let entry = table.entries[name], !entry.isOpen else { return false }
                entry.waiters.append(continuation)
                return true
            }
            if !isWaiting { continuation.resume() }
        }
    }

    /// The caller that claimed the name has opened it, or, with nil, has not.
    func settle(_ name: StoreName, _ store: AnyObject?) {
        nonisolated(unsafe) let store = store  // handed over under the mutex
        let waiters = table.withLock { table in
            guard let entry = table.entries[name] else {
                return [CheckedContinuation<Void, Never>]()
            }
            defer { entry.waiters = [] }
            entry.store = store
            entry.isOpen = store != nil
            if store == nil { table.entries[name] = nil }
            return entry.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// The store is hosted no longer.
    ///
    /// - Parameter store: The one that goes; a younger one of the same name stays. nil where it
    ///   was released already.
    func remove(_ name: StoreName, _ store: AnyObject?) -> Bool {
        nonisolated(unsafe) let store = store  // compared under the mutex
        return table.withLock { table in
            guard let entry = table.entries[name], entry.isOpen, entry.store === store else {
                return false
            }
            table.entries[name] = nil
            return true
        }
    }

    /// The name under which a store is hosted.
    func name(of store: AnyObject) -> StoreName? {
        nonisolated(unsafe) let store = store  // compared under the mutex
        return table.withLock { table in
            table.entries.first { $0.value.isOpen && $0.value.store === store }?.key
        }
    }

    /// - Returns: Whether the state was not bridged yet.
    func addBridge(_ state: Name) -> Bool {
        table.withLock { $0.bridges.insert(state).inserted }
    }

    /// - Returns: Whether the state was bridged.
    func removeBridge(_ state: Name) -> Bool {
        table.withLock { $0.bridges.remove(state) != nil }
    }

    func isBridged(_ state: Name) -> Bool {
        table.withLock { $0.bridges.contains(state) }
    }
}
