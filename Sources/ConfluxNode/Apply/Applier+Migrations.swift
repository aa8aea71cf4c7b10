import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import Synchronization

/// Migrates snapshots of stores in this node, for versions that are about to rise (rule 17).
extension Applier {
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
}

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
        let other = first.withLock { exchange(&$0, with: run) }
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

/// Migrates the snapshots with which stores begin. A migration may never end.
package final class MigrationLoads: Sendable {
    /// Runs a function, on any thread. It may never end.
    private let start: Background
    /// Calls a function after some time.
    let after: @Sendable (Duration, @escaping @Sendable () -> Void) -> Void
    /// How many have begun and not ended.
    private let count = Atomic(0)

    init(
        run start: @escaping Background,
        after: @escaping @Sendable (Duration, @escaping @Sendable () -> Void) -> Void
    ) {
        (self.start, self.after) = (start, after)
    }

    /// Begins one.
    ///
    /// - Returns: False if as many as may be have not ended.
    func run(_ body: @escaping @Sendable () -> Void) -> Bool {
        guard count.add(1, ordering: .relaxed).newValue <= Applier.migrationsMax else {
            count.subtract(1, ordering: .relaxed)
            return false
        }
        start { [self] in
            body()
            count.subtract(1, ordering: .relaxed)
        }
        return true
    }

    /// How long the migration of a state may take, by the size of its snapshot.
    static func limit(for bytes: Int) -> Duration { .seconds(10) + .seconds(bytes >> 24) }
}
