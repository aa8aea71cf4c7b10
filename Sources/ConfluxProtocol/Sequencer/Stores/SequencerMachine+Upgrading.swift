import ConfluxVocabulary

/// How a store's schema version rises. Rule 17 is implemented here: nothing about a newer version is in the log before
/// every node that hosts the store has migrated the snapshot at which the version begins, all with the same result.
///
/// The nodes that must understand a version are the hosts of the store, those that wait for it, and every node that
/// hosts another store of the state: it may open this one next.
extension SequencerMachine {
    /// The most stores whose versions rise by themselves at the same time, which the keys that created them share.
    /// *At the bound* others follow.
    static let risesMax = 16

    /// The stores whose versions rise, and how far each has come; ready while the word is on its way. *Use*: simulations.
    package var risingSteps: [(StoreName, Rise.Step)] {
        directory.lives.lives.sorted { $0.key < $1.key }.compactMap { name, life in
            if case .upgraded? = life.work.word?.kind { return (name, .ready) }
            return life.work.rise.map { (name, $0.step) }
        }
    }

    /// Why the version of a store does not rise until somebody opens it, or says so; nil if nothing failed. *Use*:
    /// simulations.
    package func failedUpgrade(of name: StoreName) -> String? {
        directory.life(of: name)?.work.riseFailure?.reason
    }

    // MARK: Beginning

    /// Opens a store as which the opener can't host it yet: the store's version is too old for it.
    mutating func openNewer(
        _ life: StoreLife, named name: StoreName, for opener: Opener, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        // The store's base, from which it would be migrated, can't be used yet.
        guard !isHeldOff(opener, from: name, into: &effects) else { return }
        if let rise = life.work.rise {
            // If it is another version than the one that is prepared, the node asks again.
            if let text = obstacle(to: name, with: opener.versions, isTold: rise.wish.isTold) {
                fail([opener], .schemaVersion, "\(name): \(text)", into: &effects)
            } else if opener.versions.contains(rise.version) {
                directory.change(name) { work in
                    work.rise?.openers.add(opener)
                    if rise.step == .rehearsing { work.rise?.add(opener.incarnation) }
                }
                goOn(rising: name, at: now, into: &effects)
            }
            return
        }
        // A session that is not back yet may host the store, so the node asks again.
        guard life.work.word == nil, !awaitsSessions else { return }
        let target = target(of: name, with: opener.versions)
        let wish = life.work.wish(at: now.monotonic, for: target)
        var failure = obstacle(to: name, with: opener.versions, isTold: wish != nil)
        if life.staysFrozenWhenOpened {
            failure = "it is frozen; thaw it first (conflux thaw \(name))"
        } else if target < opener.versions.oldest {
            failure =
                "\(lacking(opener.versions.oldest, of: name)) no newer version than \(target). Replace "
                + "those programs, or let this one host version \(life.record.schemaVersion) too "
                + "(oldestSchemaVersion)"
        } else if wish == nil, let former = life.work.riseFailure, former.heldEntries,
            let wait = former.retryAt.map({ $0 - now.monotonic }), wait > .zero
        {
            failure =
                "an attempt to raise it failed (\(former.reason)), and the next one is made in "
                + "\(wait.components.seconds + 1) s, or when you say so: conflux upgrade \(name)"
        }
        if let failure {
            let present = life.record.schemaVersion
            fail(
                [opener], .schemaVersion,
                "\(name) has schema version \(present) and this node hosts it from "
                    + "\(opener.versions.oldest) on: \(failure)", into: &effects)
            return
        }
        raise(name, to: target, for: opener, wished: wish, at: now, into: &effects)
    }

    /// Raises the versions that may rise because of the nodes that have come or left.
    mutating func reviewRises(at now: Moment, into effects: inout [SequencerEffect]) {
        for name in directory.lives.rising.sorted() {
            reviewRise(of: name, at: now, into: &effects)
        }
        guard !directory.hostsChanged.isEmpty, !awaitsSessions else { return }
        var shares = Shares<Name>()
        for name in directory.lives.rising { shares.add(of: directory.store(name)?.creator) }
        for name in directory.hostsChanged.names {
            let creator = directory.store(name)?.creator
            guard shares.hasRoom(for: creator, of: Self.risesMax) else { continue }
            directory.review(hostsOf: name)
            guard let life = directory.life(of: name), !life.work.hosts.isEmpty,
                life.work.rise == nil, !life.isFrozenAtAdmission
            else { continue }
            let version = target(of: name)
            guard version > life.record.schemaVersion, obstacle(to: name, isTold: false) == nil
            else { continue }
            if let failure = life.work.riseFailure {
                if let retryAt = failure.retryAt, retryAt <= now.monotonic {
                    directory.change(name) { $0.riseFailure = nil }
                } else {
                    if failure.retryAt != nil { directory.hostsChange(of: name) }
                    continue
                }
            }
            guard life.work.word == nil, life.work.missing == nil else {
                directory.hostsChange(of: name)
                continue
            }
            raise(
                name, to: version, wished: life.work.wish(at: now.monotonic, for: version),
                at: now, into: &effects)
            shares.add(of: creator)
        }
    }

    /// Raises a version because somebody asks for it.
    mutating func upgrade(
        _ upgrade: Upgrade, from connection: ConnectionID, as principal: Principal, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        let (name, asker) = (upgrade.store, Asker(connection: connection, request: upgrade.request))
        let sharer = principal.sharer(on: connection)
        guard let life = directory.life(of: name), life.record.life == upgrade.life else {
            let text = "there is no such store, or it has another life by now"
            refuse(.otherLife, text, to: asker, into: &effects)
            return
        }
        // If another version is on its way, the node asks again.
        if case .upgraded(let version, _, _)? = life.work.word?.kind {
            guard upgrade.schemaVersion == 0 || upgrade.schemaVersion == version else { return }
            directory.change(name) { $0.wait(asker, of: sharer) }
            return
        }
        if let rise = life.work.rise {
            guard upgrade.schemaVersion == 0 || upgrade.schemaVersion == rise.version else {
                return
            }
            directory.change(name) {
                $0.rise?.wish.add(asker, of: sharer, mayReplay: upgrade.mayReplay)
            }
            return
        }
        guard life.work.word == nil, !awaitsSessions else { return }
        let allowed = life.work.allowance
        var wish =
            allowed?.version == upgrade.schemaVersion
            ? life.work.wish(at: now.monotonic, for: upgrade.schemaVersion) ?? UpgradeWish()
            : UpgradeWish()
        wish.add(asker, of: sharer, mayReplay: upgrade.mayReplay)
        let present = life.record.schemaVersion
        let version = upgrade.schemaVersion == 0 ? target(of: name) : upgrade.schemaVersion
        if life.work.hosts.isEmpty, upgrade.schemaVersion == 0 || version > present {
            // The next opener migrates it.
            directory.change(name) { [wish] in
                $0.allowance = StoreWork.Allowance(
                    version: upgrade.schemaVersion, wish: wish,
                    until: now.monotonic + settings.migrationPatience)
            }
            return
        }
        var failure: String?
        if version < present {
            failure =
                "it has schema version \(present), and a store does not go back to an older version"
        } else if version == present, upgrade.schemaVersion != 0 {
            confirm(term.last, to: asker, into: &effects)
            return
        } else if version == present {
            failure = "\(lacking(present + 1, of: name)) no newer version than \(present)"
        } else if target(of: name) < version {
            failure = "\(lacking(version, of: name)) no newer version than \(target(of: name))"
        } else if life.isFrozenAtAdmission {
            failure = "it is frozen; thaw it first (conflux thaw \(name))"
        } else {
            failure = obstacle(to: name, isTold: true)
        }
        if let failure {
            refuse(
                .upgradeFailed, "\(name) keeps schema version \(present): \(failure)", to: asker,
                into: &effects)
            return
        }
        raise(name, to: version, wished: wish, at: now, into: &effects)
    }

    /// Begins to raise a version.
    private mutating func raise(
        _ name: StoreName, to version: UInt32, for opener: Opener? = nil, wished wish: UpgradeWish?,
        at now: Moment, into effects: inout [SequencerEffect]
    ) {
        guard let life = directory.life(of: name) else { return }
        var rise = Rise(
            to: version, base: life.record.baseSequence, behind: directory.stamp(of: name),
            until: now.monotonic + settings.votePatience, wish: wish ?? UpgradeWish())
        if let opener { rise.openers.add(opener) }
        directory.change(name) { work in
            work.rise = rise
            work.riseFailure = nil
            work.allowance = nil
        }
        goOn(rising: name, at: now, into: &effects)
    }

    // MARK: Who must understand it

    /// Whether a session of an earlier term has not come back yet. It may host anything.
    private var awaitsSessions: Bool {
        sessions.incarnations.contains {
            sessions[$0]?.presence == .live && sessions[$0]?.connection == nil
        }
    }

    /// The newest version that every node understands which must.
    func target(of name: StoreName, with opener: SupportedVersions? = nil) -> UInt32 {
        let hosts = directory.life(of: name)?.work.hosts.values.map(\.newest) ?? []
        let others = directory.versionsHosted(of: name.state)
        return (hosts + others + [opener?.newest].compactMap(\.self)).min() ?? 0
    }

    /// Names the nodes that do not understand a version.
    func lacking(_ version: UInt32, of name: StoreName) -> String {
        let hosts = directory.life(of: name)?.work.hosts ?? [:]
        let lacking = hosts.filter { $0.value.newest < version }.keys.sorted().map {
            sessions[$0]?.name?.text ?? "node \($0)"
        }
        switch lacking.count {
        case 0: return "a node that hosts another store of \(name.state) understands"
        case 1: return "\(lacking[0]), which hosts it, understands"
        default:
            let shown = lacking.prefix(3).joined(separator: ", ")
            return "\(shown)\(lacking.count > 3 ? " and others" : ""), which host it, understand"
        }
    }

    /// Why the hosts of a store, or its opener, do not want its version to rise now; nil if they do.
    func obstacle(
        to name: StoreName, with opener: SupportedVersions? = nil, isTold: Bool
    ) -> String? {
        let hosts = directory.life(of: name)?.work.hosts.values.map(\.policy) ?? []
        let policies = hosts + [opener?.policy].compactMap(\.self)
        if policies.contains(.never) {
            return "a node that hosts or opens it never lets it rise (NodeSettings.upgrades)"
        }
        return !isTold && policies.contains(.whenTold)
            ? "its version rises when you say so: conflux upgrade \(name)" : nil
    }
}
