/// Where a socket connects to next: the addresses that it was given, one after the other, and now and then one
/// that its owner was told of.
///
///     first ──▶ second ──▶ … ──▶ first      each failure moves on; behind as many as there are addresses a pause
///        ▲         │
///        └─ hint ◀─┘                        tried once, at once; a failure continues with the next of the others
package struct AddressRound {
    /// *Invariant*: one at least.
    let addresses: [Endpoint]
    private var index = 0
    private var hint: Endpoint?
    /// How many attempts in a row have failed since the last pause, or since something was heard.
    private var failures = 0
    /// How many have failed in all. *Use*: of a host with several addresses another one is first each time.
    private(set) var failureCount = 0

    package init(_ addresses: [Endpoint]) {
        precondition(!addresses.isEmpty, "a socket connects to one address at least")
        self.addresses = addresses
    }

    /// The one that is tried now.
    package var current: Endpoint { hint ?? addresses[index] }

    /// Tries this one next. Behind it the addresses continue where they were.
    package mutating func follow(_ hint: Endpoint) {
        advance()
        self.hint = hint
    }

    /// The present one has failed, or is given up.
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

    /// Something was heard from the present one.
    package mutating func heard() { failures = 0 }

    private mutating func advance() {
        // Behind a hint it is the next one's turn already.
        if hint == nil { index = (index + 1) % addresses.count }
        hint = nil
    }
}
