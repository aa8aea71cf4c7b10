import ConfluxVocabulary

/// A hello whose `joined` entry is not in the log yet.
struct PendingJoin: Sendable {
    /// The last hello of its process.
    fileprivate(set) var hello: Hello
    fileprivate(set) var connection: ConnectionID {
        didSet { isCutOff = false }
    }
    /// Whether that connection has ended, and its process has not come back by another one.
    fileprivate(set) var isCutOff = false
    /// What the entry says, whatever later hellos say.
    let name: Name?
    let isKeyed: Bool

    init(hello: Hello, connection: ConnectionID, name: Name?, isKeyed: Bool) {
        self.hello = hello
        self.connection = connection
        self.name = name
        self.isKeyed = isKeyed
    }

    /// Whose share it counts for that the hello waits.
    fileprivate var sharer: Sharer { hello.sharer(on: connection) }
}

/// The hellos whose `joined` entries are not in the log yet. After a restart all nodes say hello at once, so nothing
/// here depends on how many there are.
///
/// *Invariant*: at most one for each nonce, and at most one for each name.
struct PendingJoins: Sendable {
    private var joins: [Nonce: PendingJoin] = [:]
    private var nonces: [Name: Nonce] = [:]
    /// How many stores and states the hellos name, as far as they count, and whose hellos.
    private(set) var names = Shares<Sharer>()

    var count: Int { joins.count }
    var isEmpty: Bool { joins.isEmpty }
    /// The nonces of the hellos.
    var keys: some Collection<Nonce> { joins.keys }

    subscript(nonce: Nonce) -> PendingJoin? { joins[nonce] }

    func checkInvariants() throws(BrokenInvariant) {
        for (name, nonce) in nonces {
            try hold(joins[nonce]?.name == name, "\(nonce) does not join as \(name)")
        }
        let named = joins.values.count { $0.name != nil }
        try hold(named == nonces.count, "\(named) join under names, and \(nonces.count) are known")
        let count = joins.values.reduce(0) { $0 + $1.hello.countedNames }
        try hold(
            names.total == count, "the hellos have \(count) names, and \(names.total) are counted")
    }

    /// Whether a process other than the one with this nonce joins under a name.
    func awaits(_ name: Name, except nonce: Nonce) -> Bool {
        nonces[name].map { $0 != nonce } ?? false
    }

    /// Adds a hello. None with its nonce may be there.
    mutating func add(_ join: PendingJoin) {
        let nonce = join.hello.nonce
        let former = joins.updateValue(join, forKey: nonce)
        precondition(former == nil, "\(nonce) joins already")
        if let name = join.name { nonces[name] = nonce }
        names.add(join.hello.countedNames, of: join.sharer)
    }

    /// Takes the repeated hello of a process, if it is there. A hello from before its last one is out of date, and
    /// ignored.
    mutating func take(_ hello: Hello, from connection: ConnectionID) {
        guard let join = joins[hello.nonce], !hello.isBefore(join.hello) else { return }
        names.remove(join.hello.countedNames, of: join.sharer)
        joins[hello.nonce]?.hello = hello
        joins[hello.nonce]?.connection = connection
        names.add(hello.countedNames, of: hello.sharer(on: connection))
    }

    /// A connection has ended.
    mutating func cutOff(_ connection: ConnectionID) {
        for (nonce, join) in joins where join.connection == connection {
            joins[nonce]?.isCutOff = true
        }
    }

    /// Removes and returns the hello with a nonce.
    mutating func removeValue(forKey nonce: Nonce) -> PendingJoin? {
        guard let join = joins.removeValue(forKey: nonce) else { return nil }
        if let name = join.name, nonces[name] == nonce { nonces[name] = nil }
        names.remove(join.hello.countedNames, of: join.sharer)
        return join
    }
}
