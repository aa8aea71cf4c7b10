import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary

/// What the sequencer offers to somebody who begins with a store's state.
package struct ReadStart: Sendable {
    package let store: StoreName
    package let life: SequenceNumber
    /// The number from which the log may be read for the store.
    package let floor: SequenceNumber
    package let offer: SnapshotOffer
    package let aside: SnapshotReference?
    package let skipped: [SequenceNumber]
    /// The schema version in force from the snapshot on.
    package let version: VersionInForce

    /// The number of the snapshot.
    private var base: SequenceNumber {
        switch offer {
        case .whole(let snapshot): snapshot.sequence
        case .saved(let reference): reference.sequence
        }
    }

    /// With the snapshot and what is kept aside, the store has everything up to this number.
    package var through: SequenceNumber {
        max(base, aside?.sequence ?? .zero, SequenceNumber(floor.rawValue - 1))
    }

    /// The number behind which all entries that concern the store are in the log: that of its snapshot, unless others are
    /// kept aside.
    package var known: SequenceNumber { max(base, aside?.sequence ?? .zero) }
}

extension CommandFailure {
    /// The code for a snapshot that the log does not give.
    package static let snapshotGone = "snapshotGone"
}

/// Reads what stores begin with.
extension Connection {
    /// Asks for what a store begins with.
    ///
    /// - Returns: The start; nil if there is no such store any more.
    package func start(of store: StoreName) async throws(CommandFailure) -> ReadStart? {
        let answer: Answer.Body
        do throws(NodeError) {
            answer = try await core.ask(.start(store), patience: timeout).body
        } catch {
            if error.questionFailure == .notHosted { return nil }
            throw CommandFailure(error)
        }
        guard
            case .start(
                store,
                .opened(
                    let life, let version, _, let floor, let snapshot?, let aside, let skipped,
                    let migrated)) = answer
        else {
            throw Self.unfit
        }
        return ReadStart(
            store: store, life: life, floor: floor, offer: snapshot, aside: aside, skipped: skipped,
            version: VersionInForce(version, migrated: migrated))
    }

    /// Loads a start. If a newer snapshot has taken its place meanwhile, the command has to begin again.
    package func load(_ start: ReadStart) async throws(CommandFailure) -> HistoryStart {
        func bytes(_ reference: SnapshotReference) async throws(CommandFailure) -> Bytes {
            let place = SnapshotPlace(
                store: start.store, life: start.life, sequence: reference.sequence)
            guard let bytes = try await self.bytes(place, reference) else {
                throw CommandFailure(
                    .logFailed, code: CommandFailure.snapshotGone,
                    """
                    The log does not give the snapshot of \(start.store) at entry \(reference.sequence): it was \
                    replaced meanwhile, it is damaged, or it is larger than a node takes. Try again. If that \
                    fails, too, look for snapshotFailed in the sequencer's output.
                    """)
            }
            return bytes
        }
        let snapshot: Snapshot
        switch start.offer {
        case .whole(let whole): snapshot = whole
        case .saved(let reference):
            snapshot = Snapshot(
                sequence: reference.sequence, schemaVersion: reference.schemaVersion,
                state: EncodedState(coding: .json, bytes: try await bytes(reference)))
        }
        var aside: Bytes?
        if let reference = start.aside { aside = try await bytes(reference) }
        return HistoryStart(
            store: start.store, life: start.life, snapshot: snapshot, version: start.version,
            aside: aside, skipped: start.skipped, through: start.through)
    }

    /// Loads bytes. As long as that takes, the sequencer must answer in time.
    ///
    /// - Returns: The bytes; nil if the log no longer has them.
    package func bytes(
        _ place: SnapshotPlace, _ reference: SnapshotReference
    ) async throws(CommandFailure) -> Bytes? {
        let result = await withTaskGroup(of: Result<Bytes?, CommandFailure>.self) { group in
            group.addTask { .success(await core.load(place, reference)) }
            group.addTask {
                while !Task.isCancelled {
                    await Pause.wait(for: timeout)
                    guard !Task.isCancelled else { break }
                    do throws(CommandFailure) {
                        _ = try await status()
                    } catch {
                        return .failure(error)
                    }
                }
                return .success(nil)
            }
            defer { group.cancelAll() }
            return await group.next() ?? .success(nil)
        }
        if Task.isCancelled {
            throw CommandFailure(
                .interrupted, "Interrupted before the states of all stores were read. Run it again."
            )
        }
        return try result.get()
    }
}
