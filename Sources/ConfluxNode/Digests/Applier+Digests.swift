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

    func contains(_ migration: Migration) -> Bool { open.withLock { $0.contains(migration) } }
}

/// Two runs of one migration. They must make the same state: nothing else would tell if a store has only one host.
final class MigrationRuns: Sendable {
    private let first = Mutex<Result<Digest, any Error>?>(nil)

    /// A run ends.
    ///
    /// - Returns: The outcome, once both have ended.
    func end(with run: Result<Digest, any Error>) -> Migrated.Outcome? {
        let other = first.withLock { first -> Result<Digest, any Error>? in
            defer { first = run }
            return first
        }
        guard let other else { return nil }
        do {
            let digests = (try other.get(), try run.get())
            guard digests.0 != digests.1 else { return .migrated(digests.0) }
            return .failed(
                """
                migrate(_:from:) made two states of one snapshot: it depends on more than its arguments, for instance \
                on a clock, on random numbers, or on the order of a set
                """)
        } catch {
            return .failed("\(error)")
        }
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
        let runs = MigrationRuns()
        for _ in 0..<2 {
            apart {
                let run = Result { () throws -> Digest in
                    try crashes.migrating(from: snapshot.schemaVersion) {
                        try migrate(snapshot, version)
                    }
                }
                guard let outcome = runs.end(with: run) else { return }
                if case .failed(let message) = outcome {
                    announce(.upgradeFailed(store, schemaVersion: Int(version), message: message))
                }
                let migrated = Migrated(place: place, schemaVersion: version, outcome: outcome)
                tell(.reported(.migrated(migrated), resets: resets))
                migrations.end(migration)
            }
        }
        let limit = MigrationLoads.limit(for: snapshot.state.bytes.count)
        loads?.after(limit) {
            guard migrations.contains(migration) else { return }
            let message = "migrate(_:from:) has not ended within \(limit). Does it hang?"
            announce(.upgradeFailed(store, schemaVersion: Int(version), message: message))
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
