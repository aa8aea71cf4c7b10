import ConfluxVocabulary

/// What of the log is known to be damaged. Nothing looks for it: it is met by who reads.
///
/// A store whose entries behind its snapshot may be among it can't be begun until there is a snapshot
/// behind the damage; live replicas, which are beyond it, are asked for one. All other stores continue.
extension SequencerMachine {
    /// Damage that was met, and whether a snapshot behind it may still come.
    struct KnownDamage: Sendable {
        var damage: Damage
        var awaitedUntil: Duration
        var isAwaited = true
    }

    /// The most places of damage that are remembered. *At the bound* the lowest is forgotten, and met
    /// again by who reads it.
    static let damagesMax = 64

    mutating func met(
        _ damage: Damage, at now: Duration, into effects: inout [SequencerEffect]
    ) {
        guard !damages.contains(where: { $0.damage.first == damage.first }) else { return }
        effects.append(.note(.damaged(damage)))
        // Votes come first, then the parts of the snapshot.
        damages.append(
            KnownDamage(damage: damage, awaitedUntil: now + settings.votePatience * 2))
        damages.sort { $0.damage.first < $1.damage.first }
        if damages.count > Self.damagesMax { damages.removeFirst() }
        for name in directory.lives.lives.keys.sorted()
        where directory.life(of: name)?.hasVoter == true && knownDamage(ahead: name) != nil {
            directory.change(name) { $0.point.want() }
        }
    }

    /// Holds off each store that a snapshot may be missing of: entries behind what is listed of it are
    /// given up, or were taken in before it got its version (rule 17).
    ///
    /// The entries that are given up may not concern it. That can't be told.
    mutating func holdOff(
        _ damage: SnapshotIndexDamage, at now: Duration, into effects: inout [SequencerEffect]
    ) {
        effects.append(.note(.snapshotsUnlisted(damage.message)))
        for name in directory.lives.lives.keys.sorted() where damage.concerns(name) {
            guard let store = directory.store(name) else { continue }
            let base = store.baseSequence
            let needed = max(SequenceNumber(tenure.floor.rawValue - 1), store.migratedFrom)
            guard directory.stamp(of: name) > base, base < needed else { continue }
            let missing = KnownDamage(
                damage: Damage(first: base.next, last: needed, message: damage.message),
                awaitedUntil: now + settings.silenceMax + settings.votePatience * 2)
            directory.change(name) {
                $0.holdOff(missing)
                $0.point.want()
            }
            let place = SnapshotPlace(store: name, life: store.life, sequence: needed)
            effects.append(.note(.snapshotFailed(place, damage.message)))
        }
    }

    /// A snapshot is saved. Where one was missing, this one takes its place if the log has all that
    /// follows it: the floor does not wait for it, and may have passed it on its way.
    mutating func release(_ place: SnapshotPlace) {
        guard let life = directory.life(place), let missing = life.work.missing else { return }
        let base = life.record.baseSequence
        let isWhole =
            base >= missing.damage.last
            && (base.next >= tenure.floor || directory.stamp(of: place.store) <= base)
        directory.change(place) { work in
            if isWhole { work.holdOff(nil) } else { work.point.want() }
        }
    }

    /// The damage that who begins with what is kept of a store would have to read.
    private func knownDamage(ahead name: StoreName) -> KnownDamage? {
        if let missing = directory.life(of: name)?.work.missing { return missing }
        guard let store = directory.store(name), directory.stamp(of: name) > store.keptThrough
        else { return nil }
        return damages.first { $0.damage.last > store.keptThrough }
    }

    /// Where who opens a store may begin to read: behind what is kept of it, also where nothing had to
    /// be kept aside up to there. Where no entry behind that concerns it, behind all damage.
    func readingFloor(of name: StoreName) -> SequenceNumber {
        guard let store = directory.store(name) else { return tenure.floor }
        let kept = max(tenure.floor, store.aside?.through.next ?? .zero)
        guard let last = damages.last?.damage.last, directory.stamp(of: name) <= store.keptThrough
        else { return kept }
        return max(kept, last.next)
    }

    /// Holds off who opens a store that can't be begun. While another replica may still give a
    /// snapshot it is left unanswered, and asks again.
    ///
    /// - Returns: Whether it can't.
    mutating func isHeldOff(
        _ opener: Opener, from name: StoreName, into effects: inout [SequencerEffect]
    ) -> Bool {
        guard let known = knownDamage(ahead: name) else { return false }
        // It has nothing to vote with.
        directory.endHosting(of: name, by: opener.incarnation)
        directory.change(name) { $0.point.want() }
        if known.isAwaited, directory.life(of: name)?.hasVoter == true { return true }
        guard let connection = sessions[opener.incarnation]?.connection else { return true }
        let damage = known.damage
        let text =
            "entries \(damage.first) to \(damage.last) of the log can't be read, and there is no "
            + "snapshot of \(name) behind them: \(damage.message) A snapshot is taken once a "
            + "node that has the store is there"
        let opened = Opened(request: opener.request, outcome: .failed(.damaged, message: text))
        effects.append(.send(.opened(opened), to: connection))
        return true
    }

    /// What no snapshot came for in time is not waited for any more; what the log has given up is
    /// forgotten.
    mutating func reviewDamage(at now: Duration) {
        damages.removeAll { $0.damage.last < tenure.floor }
        for index in damages.indices where damages[index].awaitedUntil <= now {
            damages[index].isAwaited = false
        }
        let late = directory.lives.lives.filter { _, life in
            life.work.missing.map { $0.isAwaited && $0.awaitedUntil <= now } ?? false
        }
        for name in late.keys { directory.change(name) { $0.endAwaiting() } }
    }
}
