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
        var waiters: [OneShot<Bool>] = []
    }

    /// A state that is bridged, or being bridged by one caller.
    private struct Bridge {
        var isOpen = false
        var waiters: [OneShot<Bool>] = []
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
        var bridges: [Name: Bridge] = [:]
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

    /// Waits until whoever opens the name is done, or the waiting task is cancelled.
    func waitForOpening(of name: StoreName) async {
        let turn = OneShot<Bool>()
        let isWaiting = table.withLock { table in
            guard let entry = table.entries[name], !entry.isOpen else { return false }
            entry.waiters.append(turn)
            return true
        }
        if isWaiting { _ = await turn.receive(onCancel: false) }
    }

    /// The caller that claimed the name has opened it, or, with nil, has not.
    func settle(_ name: StoreName, _ store: AnyObject?) {
        nonisolated(unsafe) let store = store  // handed over under the mutex
        let waiters = table.withLock { table in
            guard let entry = table.entries[name] else { return [OneShot<Bool>]() }
            defer { entry.waiters = [] }
            entry.store = store
            entry.isOpen = store != nil
            if store == nil { table.entries[name] = nil }
            return entry.waiters
        }
        for waiter in waiters { waiter.send(true) }
    }

    /// The store is hosted no longer.
    ///
    /// - Parameters:
    ///   - name: Its name.
    ///   - store: The one that goes; a younger one of the same name stays. nil where it was
    ///     released already.
    ///   - whenRemoved: Called before anybody can claim the name again, so that what it posts
    ///     stands before what the next opener posts, and a route that it sets is replaced by the
    ///     next opener's. It must do nothing else.
    /// - Returns: Whether it was hosted.
    @discardableResult
    func remove(_ name: StoreName, _ store: AnyObject?, whenRemoved: () -> Void) -> Bool {
        nonisolated(unsafe) let store = store  // compared under the mutex
        return table.withLock { table in
            guard let entry = table.entries[name], entry.isOpen, entry.store === store else {
                return false
            }
            table.entries[name] = nil
            whenRemoved()
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

    /// What becomes of a wish to bridge a state.
    enum BridgeClaim {
        /// It is bridged.
        case open
        /// Somebody bridges it: wait, then claim again.
        case opening
        /// The caller bridges it, and says how that ended.
        case mine
    }

    func claimBridge(_ state: Name) -> BridgeClaim {
        table.withLock { table in
            guard let bridge = table.bridges[state] else {
                table.bridges[state] = Bridge()
                return .mine
            }
            return bridge.isOpen ? .open : .opening
        }
    }

    /// Waits until whoever bridges the state is done, or the waiting task is cancelled.
    func waitForBridge(_ state: Name) async {
        let turn = OneShot<Bool>()
        let isWaiting = table.withLock { table in
            guard table.bridges[state]?.isOpen == false else { return false }
            table.bridges[state]?.waiters.append(turn)
            return true
        }
        if isWaiting { _ = await turn.receive(onCancel: false) }
    }

    /// The caller that claimed the state has bridged it, or has not.
    func settleBridge(_ state: Name, isOpen: Bool) {
        let waiters = table.withLock { table in
            let waiters = table.bridges[state]?.waiters ?? []
            table.bridges[state] = isOpen ? Bridge(isOpen: true) : nil
            return waiters
        }
        for waiter in waiters { waiter.send(true) }
    }

    /// The state is bridged no longer.
    ///
    /// - Parameters:
    ///   - state: The state.
    ///   - whenRemoved: As for stores.
    /// - Returns: Whether the state was bridged.
    func removeBridge(_ state: Name, whenRemoved: () -> Void) -> Bool {
        table.withLock { table in
            guard table.bridges[state]?.isOpen == true else { return false }
            table.bridges[state] = nil
            whenRemoved()
            return true
        }
    }
}
