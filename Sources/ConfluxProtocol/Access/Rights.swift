import ConfluxVocabulary

/// What somebody may do, and to which stores.
public struct Rights: Sendable, Hashable {
    /// What may be done with a store.
    public enum Permission: String, Sendable, Hashable, CaseIterable {
        /// Reads states, and actions in the log.
        case observe
        /// Dispatches actions.
        case dispatch
        /// Hosts replicas: opens, and so creates, a store. Who hosts a store may also observe it.
        case host
        /// Drops and freezes stores, and skips entries.
        case administer
    }

    /// Everything.
    public static let all = Rights(
        patterns: Dictionary(uniqueKeysWithValues: Permission.allCases.map { ($0, [.all]) }))
    /// Nothing.
    public static let none = Rights(patterns: [:])

    /// For which stores each permission is granted. One that is not there is granted for none.
    public var patterns: [Permission: [StorePattern]]
    /// The most bytes of one encoded action; nil if the sequencer's own limit alone counts.
    public var payloadBytesMax: UInt32?
    /// The most actions a second, over a second's time; nil for no limit. *At the bound* actions wait in their node.
    public var actionsPerSecondMax: UInt32?
    /// The most sessions that the sequencer remembers of the key; nil for
    /// ``SequencerSettings/sessionsPerKeyMax``. *At the bound* the one that left first is forgotten, and
    /// where all are present a further one is refused.
    public var sessionsMax: UInt32?
    /// The most connections of the key with each of the sequencer's sockets; nil for an eighth of all.
    /// *At the bound* a further one is refused.
    public var connectionsMax: UInt32?

    /// Makes rights.
    ///
    /// - Parameters:
    ///   - patterns: For which stores each permission is granted.
    ///   - payloadBytesMax: The most bytes of one encoded action.
    ///   - actionsPerSecondMax: The most actions a second.
    ///   - sessionsMax: The most sessions.
    ///   - connectionsMax: The most connections.
    public init(
        patterns: [Permission: [StorePattern]], payloadBytesMax: UInt32? = nil,
        actionsPerSecondMax: UInt32? = nil, sessionsMax: UInt32? = nil,
        connectionsMax: UInt32? = nil
    ) {
        self.patterns = patterns
        self.payloadBytesMax = payloadBytesMax
        self.actionsPerSecondMax = actionsPerSecondMax
        self.sessionsMax = sessionsMax
        self.connectionsMax = connectionsMax
    }

    /// Whether a permission is granted for all that a target concerns.
    public func allow(_ permission: Permission, _ target: Target) -> Bool {
        patterns[permission]?.contains { $0.covers(target) } ?? false
    }

    /// Whether what concerns a target may be read.
    public func allowReading(_ target: Target) -> Bool {
        allow(.observe, target) || allow(.host, target)
    }

    /// Whether everything may be read.
    public var allowReadingAll: Bool {
        patterns[.observe]?.contains(where: \.coversAll) == true
            || patterns[.host]?.contains(where: \.coversAll) == true
    }

    /// Whether everything may be administered.
    var allowAdministeringAll: Bool {
        patterns[.administer]?.contains(where: \.coversAll) == true
    }

    /// Whether one of these permissions is granted for any store.
    func allowSome(of permissions: Permission...) -> Bool {
        permissions.contains { patterns[$0]?.isEmpty == false }
    }
}

/// Who speaks on a connection. The connection's key proves the name, and nothing that is said counts
/// for it.
public struct Principal: Sendable, Hashable {
    /// Whoever reaches a sequencer without keys: may do everything.
    public static let anybody = Principal(name: nil, rights: .all)

    /// What the key is called; nil if there are no keys.
    public let name: Name?
    /// What it may do.
    public let rights: Rights

    /// Makes a principal.
    ///
    /// - Parameters:
    ///   - name: What the key is called.
    ///   - rights: What it may do.
    public init(name: Name?, rights: Rights) {
        self.name = name
        self.rights = rights
    }

    /// What it is told that it may not do.
    func denial(
        of permission: Rights.Permission, _ target: some CustomStringConvertible
    ) -> String {
        "\(name.map { "the key \($0)" } ?? "this key") may not \(permission.rawValue) \(target); "
            + "ask for the right \(permission.rawValue)=\(target) in the sequencer's file of "
            + "authorised keys"
    }

    /// Why a message is not answered as it asks; nil if it is allowed. Actions are judged one by one
    /// (rule 14).
    func denial(of message: NodeMessage) -> String? {
        switch message {
        case .hello(let hello): denial(of: hello)
        case .open(let open): denied(.host, open.subject.target)
        case .drop(let drop): denied(.administer, .store(drop.store))
        case .freeze(let freeze): denied(.administer, .store(freeze.store))
        case .skip(let skip): denied(.administer, skip.target)
        case .load(let load): deniedReading(.store(load.place.store))
        case .question(let question):
            switch question.body {
            case .observe(let store, _, _): deniedReading(.store(store))
            case .applied(_, let target):
                rights.allow(.dispatch, target) ? nil : deniedReading(target)
            case .reload, .handOver: deniedAdministration
            case .status, .shapes, .sequencers, .alive: nil
            }
        case .submit, .visit, .fetch, .close, .progress, .answer, .barrier, .digest, .snapshot,
            .bye:
            nil
        }
    }

    private func denial(of hello: Hello) -> String? {
        for store in hello.hosted {
            if let denial = denied(.host, .store(store.store)) { return denial }
        }
        for state in hello.bridged {
            if let denial = denied(.host, .state(state.state)) { return denial }
        }
        return hello.role == .observer || rights.allowSome(of: .dispatch, .host)
            ? nil : denial(of: .dispatch, "any store")
    }

    private func denied(_ permission: Rights.Permission, _ target: Target) -> String? {
        rights.allow(permission, target) ? nil : denial(of: permission, target)
    }

    private var deniedAdministration: String? {
        rights.allowAdministeringAll ? nil : denial(of: .administer, StorePattern.all)
    }

    private func deniedReading(_ target: Target) -> String? {
        rights.allowReading(target) ? nil : denial(of: .observe, target)
    }
}
