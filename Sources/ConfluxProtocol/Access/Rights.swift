import ConfluxVocabulary

/// What a key may do, and to which stores.
public struct Rights: Sendable, Hashable {
    /// One of the things that a right allows.
    public enum Permission: String, Sendable, Hashable, CaseIterable {
        /// To read states, and actions in the log.
        case observe
        /// To dispatch actions.
        case dispatch
        /// To host replicas: to open a store, and so to create it. Whoever hosts a store may also
        /// observe it.
        case host
        /// To drop and freeze stores, and to skip entries.
        case administer
    }

    /// Everything is allowed.
    public static let all = Rights(
        patterns: Dictionary(uniqueKeysWithValues: Permission.allCases.map { ($0, [.all]) }))
    /// Nothing is allowed.
    public static let none = Rights(patterns: [:])

    /// The stores for which each permission is granted. A permission that is absent is granted for
    /// no store.
    public var patterns: [Permission: [StorePattern]]
    /// The most bytes of one encoded action; nil if only the sequencer's own limit applies.
    public var payloadBytesMax: UInt32?
    /// The most actions a second, measured over one second; nil for no limit. *At the bound* actions wait in their
    /// node.
    public var actionsPerSecondMax: UInt32?
    /// The most sessions that the sequencer remembers for the key; nil for ``SequencerSettings/sessionsPerKeyMax``.
    /// *At the bound* the session that left first is forgotten. If all are present, a further session is refused.
    public var sessionsMax: UInt32?
    /// The most connections that the key may have to each of the sequencer's sockets; nil for an eighth of all. *At
    /// the bound* a further connection is refused.
    public var connectionsMax: UInt32?

    /// Whether a permission is granted for everything that a target concerns.
    public func allow(_ permission: Permission, _ target: Target) -> Bool {
        if case .event(_, let states) = target, !states.isEmpty {
            return states.allSatisfy { allow(permission, .state($0)) }
        }
        return patterns[permission]?.contains { $0.covers(target) } ?? false
    }

    /// Whether everything that a target concerns may be read.
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

/// The peer on a connection. Only the connection's key proves the name, whatever the peer claims.
public struct Principal: Sendable, Hashable {
    /// The peer of a sequencer without keys: it may do everything.
    public static let anybody = Principal(name: nil, rights: .all)

    /// The name of the key; nil if there are no keys.
    public let name: Name?
    /// What the key may do.
    public let rights: Rights

    /// Makes a principal.
    ///
    /// - Parameters:
    ///   - name: The name of the key.
    ///   - rights: What the key may do.
    public init(name: Name?, rights: Rights) {
        self.name = name
        self.rights = rights
    }

    /// The message for a peer that lacks a permission.
    ///
    /// - Parameters:
    ///   - permission: The permission.
    ///   - target: What it would be for.
    /// - Returns: The message, without a full stop.
    package func denial(
        of permission: Rights.Permission, _ target: some CustomStringConvertible
    ) -> String {
        "\(name.map { "the key \($0)" } ?? "this key") may not \(permission.rawValue) \(target); "
            + "ask for the right \(permission.rawValue)=\(target) in the file of authorised keys"
    }

    /// Why a message is refused; nil if it is allowed. Actions are judged one by one (rule 14).
    func denial(of message: NodeMessage) -> String? {
        switch message {
        case .hello(let hello): denial(of: hello)
        case .open(let open): denied(.host, open.subject.target)
        case .drop(let drop): denied(.administer, .store(drop.store))
        case .freeze(let freeze): denied(.administer, .store(freeze.store))
        case .upgrade(let upgrade): denied(.administer, .store(upgrade.store))
        case .skip(let skip): denied(.administer, skip.target)
        case .load(let load): deniedReading(.store(load.place.store))
        case .question(let question):
            switch question.body {
            case .observe(let store, _, _), .start(let store): deniedReading(.store(store))
            // Which states that concerns is known only where it is answered.
            case .applied(_, .event): nil
            case .applied(_, let target):
                rights.allow(.dispatch, target) ? nil : deniedReading(target)
            case .reload, .handOver: deniedAdministration
            // Which timers and leases it may see is decided one by one.
            case .status, .shapes, .sequencers, .alive, .timers, .lease, .leases: nil
            }
        case .submit, .fetch, .close, .progress, .answer, .barrier, .digest, .snapshot,
            .migrated, .leaving, .bye:
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
