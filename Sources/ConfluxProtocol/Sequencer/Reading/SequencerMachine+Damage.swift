import ConfluxVocabulary

/// The known damage of the log. Nothing searches for damage: it is found when somebody reads the
/// damaged entries.
///
/// If damage may concern entries after a store's snapshot, the store can't be opened until there is
/// a snapshot after the damage. Live replicas have passed the damage, and are asked for such a
/// snapshot. All other stores continue.
extension SequencerMachine {
    /// Damage that was found, and whether a snapshot after it may still arrive.
    struct KnownDamage: Sendable {
        var damage: Damage
        var awaitedUntil: Duration
        var isAwaited = true
    }

    /// The most places of damage that are remembered. *At the bound* the lowest is forgotten, and
    /// found again when it is read.
    static let damagesMax = 64

    mutating func met(
        _ damage: Damage, at now: Duration, into effects: inout [SequencerEffect]
    ) {
        guard !damages.contains(where: { $0.damage.first == damage.first }) else { return }
        effects.append(.note(.damaged(damage)))
        // The replicas vote first, and then the parts of the snapshot are uploaded.
        damages.append(
            KnownDamage(damage: damage, awaitedUntil: now + settings.votePatience * 2))
        damages.sort { $0.damage.first < $1.damage.first }
        if damages.count > Self.damagesMax { damages.removeFirst() }
        for name in directory.lives.lives.keys.sorted()
        where directory.life(of: name)?.hasVoter == true && knownDamage(ahead: name) != nil {
            directory.change(name) { $0.point.want() }
        }
    }

    /// Holds off the openers of each store of which a snapshot may be missing. That is a store for
    /// which entries after its listed snapshot were discarded, or precede its upgrade to its
    /// version (rule 17).
    ///
    /// The discarded entries may not concern the store. That can't be known.
    mutating func holdOff(
        _ damage: SnapshotIndexDamage, at now: Duration, into effects: inout [SequencerEffect]
    ) {
        effects.append(.note(.snapshotsUnlisted(damage.message)))
        for name in directory.lives.lives.keys.sorted() where damage.concerns(name) {
            guard let store = directory.store(name) else { continue }
            let base = store.baseSequence
            let needed = max(SequenceNumber(term.floor.rawValue - 1), store.migratedFrom)
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

    /// A snapshot is saved. If one was missing, this one replaces it, provided that the log has all
    /// entries after it. The floor does not wait for such a snapshot, and may have passed it during
    /// the upload.
    mutating func release(_ place: SnapshotPlace) {
        guard let life = directory.life(place), let missing = life.work.missing else { return }
        let base = life.record.baseSequence
        let isWhole =
            base >= missing.damage.last
            && (base.next >= term.floor || directory.stamp(of: place.store) <= base)
        directory.change(place) { work in
            if isWhole { work.holdOff(nil) } else { work.point.want() }
        }
    }

    /// The damage ahead of a replica that begins with what is kept of the store; nil if there is
    /// none.
    private func knownDamage(ahead name: StoreName) -> KnownDamage? {
        if let missing = directory.life(of: name)?.work.missing { return missing }
        guard let store = directory.store(name), directory.lastNeeded(by: name) > store.keptThrough
        else { return nil }
        return damages.first { $0.damage.last > store.keptThrough }
    }

    /// The number from which an opener of the store may begin to read. It is the log's floor, or
    /// the number after what is kept aside of the store, even if there was nothing to keep. If no
    /// entry after what is kept concerns the store, it is also after all damage.
    func readingFloor(of name: StoreName) -> SequenceNumber {
        guard let store = directory.store(name) else { return term.floor }
        let kept = max(term.floor, store.aside?.through.next ?? .zero)
        guard let last = damages.last?.damage.last,
            directory.lastNeeded(by: name) <= store.keptThrough
        else { return kept }
        return max(kept, last.next)
    }

    /// Holds off an opener if the store can't be begun. While another replica may still supply a
    /// snapshot, the opener gets no answer, and asks again.
    ///
    /// - Returns: Whether the opener is held off.
    mutating func isHeldOff(
        _ opener: Opener, from name: StoreName, into effects: inout [SequencerEffect]
    ) -> Bool {
        guard let known = knownDamage(ahead: name) else { return false }
        // The opener has no replica that could vote.
        directory.endHosting(of: name, by: opener.incarnation)
        directory.change(name) { $0.point.want() }
        if known.isAwaited, directory.life(of: name)?.hasVoter == true { return true }
        guard let connection = sessions[opener.incarnation]?.connection else { return true }
        let damage = known.damage
        let text =
            "entries \(damage.first) to \(damage.last) of the log can't be read, and there is no "
            + "snapshot of \(name) behind them: \(damage.message) A snapshot is taken once a "
            + "node that hosts the store connects"
        let opened = Opened(request: opener.request, outcome: .failed(.damaged, message: text))
        effects.append(.send(.opened(opened), to: connection))
        return true
    }

    /// Stops waiting for snapshots that did not arrive in time, and forgets damage that the log has
    /// discarded.
    mutating func reviewDamage(at now: Duration) {
        damages.removeAll { $0.damage.last < term.floor }
        for index in damages.indices where damages[index].awaitedUntil <= now {
            damages[index].isAwaited = false
        }
        let late = directory.lives.lives.filter { _, life in
            life.work.missing.map { $0.isAwaited && $0.awaitedUntil <= now } ?? false
        }
        for name in late.keys { directory.change(name) { $0.endAwaiting() } }
    }
}
