extension ReplicaMachine {
    /// Checks what its parts promise, and what holds between them.
    ///
    /// - Throws: What does not hold.
    package func checkInvariants() throws(BrokenInvariant) {
        try submissions.checkInvariants()
        try buffer.checkInvariants()
        try catchUps.checkInvariants(below: live)
        try hosting.checkInvariants()
        try hold(
            applied <= live ?? .zero,
            "\(applied) is applied, and \(live?.description ?? "nothing") delivered")
        try hold(
            phase != .joined || session != nil && welcome != nil, "it joined without a welcome")
    }
}
