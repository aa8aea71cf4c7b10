/// Decides which address a socket connects to next. The socket's addresses take turns, and its owner may insert a
/// hint: another address to try next.
///
///     first ──▶ second ──▶ … ──▶ first      each failure moves on; after a failure of each address, a pause
///        ▲         │
///        └─ hint ◀─┘                        tried once, without a pause; after a failure, the next address follows
package struct AddressRound {
    /// *Invariant*: at least one.
    let addresses: [Endpoint]
    private var index = 0
    private var hint: Endpoint?
    /// How many attempts in a row have failed since the last pause, or since something was last
    /// received.
    private var failures = 0
    /// How many attempts have failed in all. *Use*: if a host has several addresses, each attempt begins with a
    /// different one.
    private(set) var failureCount = 0

    package init(_ addresses: [Endpoint]) {
        precondition(!addresses.isEmpty, "a socket connects to one address at least")
        self.addresses = addresses
    }

    /// The address that is being tried.
    package var current: Endpoint { hint ?? addresses[index] }

    /// Tries the hint next. After it, the addresses continue where they were.
    package mutating func follow(_ hint: Endpoint) {
        advance()
        self.hint = hint
    }

    /// Moves on from the current address, which has failed or is abandoned.
    ///
    /// - Returns: Whether a pause is due.
    package mutating func moveOn() -> Bool {
        failureCount &+= 1
        failures += 1
        advance()
        guard failures >= addresses.count else { return false }
        failures = 0
        return true
    }

    /// Something was received from the current address.
    package mutating func heard() { failures = 0 }

    private mutating func advance() {
        // If a hint was current, `index` points to the next address already.
        if hint == nil { index = (index + 1) % addresses.count }
        hint = nil
    }
}
