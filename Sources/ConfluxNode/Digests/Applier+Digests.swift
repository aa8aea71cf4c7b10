import Conflux
import ConfluxHashing
import ConfluxProtocol
import ConfluxVocabulary
import Synchronization

/// The migrations that a process has begun and not ended.
final class Migrations: Sendable {
    /// One migration, of the history since a reset.
    struct Migration: Hashable, Sendable {
        let place: SnapshotPlace
        let version: UInt32
        let resets: UInt64
    }

    enum Beginning {
        case new
        /// It has begun already, and answers for this one, too.
        case repeated
        case tooMany
    }

    private let open = Mutex<Set<Migration>>([])

    func begin(_ migration: Migration, of most: Int) -> Beginning {
        open.withLock { open in
            if open.contains(migration) { return .repeated }
            guard open.count < most else { return .tooMany }
            open.insert(migration)
            return .new
        }
    }

    func end(_ migration: Migration) {
        open.withLock { _ = $0.remove(migration) }
    }
}

/// Handles digest points and divergence in this node (rules 18 and 22).
extension Applier {
    /// Copies a store at its digest point, after its lane's present work. The report on the copy comes after the reports
    /// on all entries without effect up to the point.
    func digest(at place: SnapshotPlace) {
        guard let replica = replica(place.store) else { return }
        let (reports, request) = (replica.progress.reports, replica.progress.request)
        let version = replica.version
        reports.expect()
        replica.copy { reports.add(.copied(request: request, place, $0, version: version)) }
        collect(replica.progress)
    }

    /// Votes on the state of a store at its digest point. The long parts run in the background.
    func vote(
        at place: SnapshotPlace, _ encoding: Encoding?, version: UInt32, refusals: Digest
    ) {
        guard let encoding, let replica = replica(place.store), replica.life == place.life else {
            return
        }
        let (tell, shelf, resets) = (tell, shelf, progress.resets)
        background {
            // A state that can't be encoded has no vote. If no replica has one, the sequencer reports it.
            guard let bytes = try? encoding(), !bytes.isEmpty else { return }
            let vote = Vote(
                place: place, schemaVersion: version, digest: Digest(of: bytes),
                refusals: refusals, byteCount: UInt64(bytes.count))
            shelf.keep(bytes, at: place)
            tell(.reported(.digested(vote), resets: resets))
        }
    }

    /// Migrates a snapshot, and reports what comes of it (rule 17). It runs apart from everything else, since a migration
    /// may hang.
    func migrate(
        _ store: StoreName, life: SequenceNumber, _ snapshot: Snapshot, to version: UInt32,
        _ log: LogID
    ) {
        guard let replica = replica(store) else { return }
        let migrate = replica.migrate
        // A store that is about to be opened has no record yet.
        let crashes =
            replica.crashes ?? crashRecord(of: store, life, log, at: snapshot.sequence)
        let (tell, announce, resets) = (tell, announce, progress.resets)
        let place = SnapshotPlace(store: store, life: life, sequence: snapshot.sequence)
        let migration = Migrations.Migration(place: place, version: version, resets: resets)
        let migrations = migrations
        switch migrations.begin(migration, of: Self.migrationsMax) {
        case .new: break
        // The sequencer repeats what it is not answered.
        case .repeated: return
        case .tooMany:
            let text = "earlier migrations of this process have not ended"
            let migrated = Migrated(
                place: place, schemaVersion: version, outcome: .failed(text))
            tell(.reported(.migrated(migrated), resets: resets))
            return
        }
        apart {
            defer { migrations.end(migration) }
            let outcome: Migrated.Outcome
            do {
                outcome = .migrated(
                    try crashes.migrating(from: snapshot.schemaVersion) {
                        try migrate(snapshot, version)
                    })
            } catch {
                outcome = .failed("\(error)")
                announce(.upgradeFailed(store, schemaVersion: Int(version), message: "\(error)"))
            }
            let migrated = Migrated(place: place, schemaVersion: version, outcome: outcome)
            tell(.reported(.migrated(migrated), resets: resets))
        }
    }

    /// Finds where the state here differs from another one at the same digest point, and reports it.
    func compare(_ divergence: Divergence, with other: Bytes?) {
        if divergence.mustReload { replica(divergence.store)?.progress.letGo() }
        let (tell, shelf, announce, resets) = (tell, shelf, announce, progress.resets)
        background {
            let path = Self.difference(shelf.encoding(at: divergence.place), other)
            announce(.diverged(StateDivergence(divergence, path: path)))
            guard let path else { return }
            let location = DigestReport.Location(place: divergence.place, path: path)
            tell(.reported(.located(location), resets: resets))
        }
    }

    /// The first key path at which two encodings differ; nil if one is missing, or if they are the
    /// same.
    private static func difference(_ own: [UInt8]?, _ other: Bytes?) -> String? {
        guard let own, let other, own[...] != other else { return nil }
        do {
            let (left, right) = (try JSONValue(json: own), try JSONValue(json: Array(other)))
            return left.firstDifference(from: right).map { "\($0)" }
        } catch {
            return nil
        }
    }
}
