import ConfluxVocabulary

/// The key that opens a session, as the sequencer knows it.
struct SessionOwner: Sendable, Equatable {
    /// What it is called.
    let name: Name
    /// How many sessions it may have, where its rights say so.
    let sessionsMax: UInt32?
}

extension Hello {
    /// A session belongs to the name of the key that opened it (rule 8): the nonce of a hello counts
    /// together with that name. Whoever learns another's nonce, from the log or otherwise, opens a
    /// session of its own with it. A key that replaces another under the same name has its sessions.
    ///
    /// - Parameter principal: Who speaks on the connection.
    /// - Returns: The hello, with the owner's nonce.
    func owned(by principal: Principal) -> Hello {
        var hello = self
        hello.owner = principal.name.map {
            SessionOwner(name: $0, sessionsMax: principal.rights.sessionsMax)
        }
        hello.nonce = nonce.owned(by: principal.name)
        return hello
    }
}

extension Nonce {
    /// The nonce together with the name of the key of its connection; itself where there are no keys.
    func owned(by owner: Name?) -> Nonce {
        guard let owner else { return self }
        return Nonce(hashOf: "conflux session owner\0\(owner)\0\(self)")
    }
}
