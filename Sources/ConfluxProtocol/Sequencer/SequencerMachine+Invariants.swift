import ConfluxVocabulary

extension SequencerMachine {
    /// Checks what its parts promise, and what holds between them.
    ///
    /// - Throws: What does not hold.
    package func checkInvariants() throws(BrokenInvariant) {
        var reserved: [Name: Int] = [:]
        for nonce in joining.keys where sessions.incarnation(of: nonce) == nil {
            if let owner = joining[nonce]?.hello.owner?.name { reserved[owner, default: 0] += 1 }
        }
        try sessions.checkInvariants(reserved: reserved)
        try connections.checkInvariants()
        try joining.checkInvariants()
        try directory.checkInvariants()
        try pipeline.checkInvariants()
        try timers.checkInvariants()
        try leases.checkInvariants()
        try term.claims.checkInvariants()
        guard phase == .serving else { return }
        for session in sessions.all {
            if directory.hosting[session.incarnation] != nil {
                try hold(session.presence == .live, "\(session.incarnation) has left, and hosts")
            }
            guard let connection = session.connection else { continue }
            try hold(
                connections[connection] == .member(session.incarnation),
                "\(session.incarnation) is reached by another's connection")
        }
    }
}
