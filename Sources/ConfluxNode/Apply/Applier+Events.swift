import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Applies the log's own events to the stores here.
extension Applier {
    /// Applies an event.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - sequence: Its number.
    ///   - recipients: The stores that get the commit.
    ///   - points: Gets the digest points of stores here.
    ///   - stopped: Gets the stores here that stop at the event.
    func apply(
        _ event: LogEvent, at sequence: SequenceNumber, to recipients: Recipients,
        _ points: inout [SnapshotPlace], _ stopped: inout [Replica]
    ) {
        switch event {
        case .dropped(let store, let life):
            guard let replica = replica(store, life, at: sequence, recipients) else { return }
            let progress = replica.progress
            if progress.phase != .ended { progress.delivered = sequence }
            progress.phase = .ended
            replica.isDropped = true
            wait(.dropped, at: progress.delivered, progress)
        case .frozen(let store, let life, _):
            pass(store, life, at: sequence, recipients)?.progress.leave(at: sequence)
        case .thawed(let store, let life):
            pass(store, life, at: sequence, recipients)?.progress.comeBack(at: sequence)
        case .digestPoint(let store, let life):
            guard let replica = replica(store, life, at: sequence, recipients),
                replica.progress.phase != .ended
            else { return }
            points.append(SnapshotPlace(store: store, life: life, sequence: sequence))
        case .skipped(let skipped, let target):
            for stores in states.values {
                for replica in stores.replicas.values
                where target.concerns(replica.name) && hears(replica, at: sequence, recipients) {
                    skip(skipped, of: replica)
                    pass(replica, at: sequence)
                }
            }
        case .upgraded(let store, let life, let version, _, _):
            guard let replica = replica(store, life, at: sequence, recipients),
                replica.progress.phase != .ended
            else { return }
            if version > replica.version, !upgrade(replica, to: version, at: sequence) {
                stopped.append(replica)
            }
            pass(replica, at: sequence)
        case .claim, .joined, .visited, .left, .forgotten, .created, .handles, .forked: break
        }
    }

    /// A store has a newer schema version (rule 17). If this program understands it, the store begins anew with the
    /// snapshot that was migrated. Otherwise it stops: programs that understand the version judge what follows.
    ///
    /// - Returns: Whether this program understands the version.
    private func upgrade(
        _ replica: Replica, to version: UInt32, at sequence: SequenceNumber
    ) -> Bool {
        let progress = replica.progress
        if version <= replica.newestVersion {
            progress.letGo()
            report(.reload(replica.name))
            return true
        }
        progress.delivered = SequenceNumber(sequence.rawValue - 1)
        progress.stop = (
            sequence,
            """
            \(replica.name) stopped at \(sequence): it has schema version \(version) from there on and this program \
            knows \(replica.newestVersion). Run a newer program.
            """
        )
        progress.phase = .ended
        return false
    }

    /// The store here that an event is for; nil if there is none.
    private func replica(
        _ store: StoreName, _ life: SequenceNumber, at sequence: SequenceNumber,
        _ recipients: Recipients
    ) -> Replica? {
        guard let replica = replica(store), replica.life == life,
            hears(replica, at: sequence, recipients)
        else { return nil }
        return replica
    }

    /// The store here that an event is for, which passes it.
    private func pass(
        _ store: StoreName, _ life: SequenceNumber, at sequence: SequenceNumber,
        _ recipients: Recipients
    ) -> Replica? {
        guard let replica = replica(store, life, at: sequence, recipients) else { return nil }
        pass(replica, at: sequence)
        return replica
    }

    /// Lets the version of a store rise with an event, as it does at the sequencer (rule 24).
    private func pass(_ replica: Replica, at sequence: SequenceNumber) {
        // A store that stopped, or begins anew, has not come to the event.
        guard replica.progress.phase != .ended, replica.progress.phase != .empty else { return }
        replica.lastChange = max(replica.lastChange, sequence)
        states[replica.name.state]?.runner?.pass(replica)
    }

    /// Whether a store gets an event. A stopped store still gets the events of the feed, since the entry at
    /// which it stopped may be skipped.
    private func hears(
        _ replica: Replica, at sequence: SequenceNumber, _ recipients: Recipients
    ) -> Bool {
        let progress = replica.progress
        if progress.phase == .ended {
            guard case .attached = recipients else { return false }
            return !replica.isDropped
        }
        return recipients.include(progress) && sequence > progress.delivered
    }

    /// Skips an entry (rule 38). A store that stopped there, or has the entry in its state, begins anew. The entry may
    /// have been in its snapshot: the sequencer may have lost that snapshot before it skipped the entry.
    private func skip(_ sequence: SequenceNumber, of replica: Replica) {
        guard sequence > replica.life, !replica.skips.contains(sequence) else { return }
        replica.skips.insert(sequence)
        guard replica.lastChange >= sequence || replica.progress.stop?.at == sequence else {
            return
        }
        replica.progress.letGo()
        report(.reload(replica.name))
    }
}
