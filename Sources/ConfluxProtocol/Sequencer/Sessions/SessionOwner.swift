import ConfluxVocabulary

extension Hello {
    /// A session belongs to the name of the key that opened it (rule 8): the nonce of a hello counts
    /// together with that name. Whoever learns another's nonce, from the log or otherwise, opens a
    /// session of its own with it. A key that replaces another under the same name has its sessions.
    ///
    /// - Parameter owner: The name of the connection's key; nil where there are no keys.
    /// - Returns: The hello, with the owner's nonce.
    func owned(by owner: Name?) -> Hello {
        var hello = self
        hello.owner = owner
        hello.nonce = nonce.owned(by: owner)
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
