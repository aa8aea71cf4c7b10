import ConfluxVocabulary

/// The key that opens a session, as the sequencer knows it.
struct SessionOwner: Sendable, Equatable {
    /// The name of the key.
    let name: Name
    /// How many sessions the key may have; nil if its rights set no number.
    let sessionsMax: UInt32?
}

extension Hello {
    /// A session belongs to the name of the key that opened it (rule 8): the nonce of a hello
    /// counts only together with that name. So a peer that learns another's nonce, from the log or
    /// otherwise, opens a session of its own with it. A key that replaces another one under the
    /// same name takes over its sessions.
    ///
    /// - Parameter principal: The peer on the connection.
    /// - Returns: The hello with the nonce that includes the owner.
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
    /// The nonce combined with the name of the connection's key; the nonce itself if there are no
    /// keys.
    func owned(by owner: Name?) -> Nonce {
        guard let owner else { return self }
        return Nonce(hashOf: "conflux session owner\0\(owner)\0\(self)")
    }
}
