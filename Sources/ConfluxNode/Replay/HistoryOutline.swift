import ConfluxProtocol
import ConfluxVocabulary

/// An entry with which a store's schema version rose. The version is in force from the base on: entries between the base
/// and the rise are there only if somebody asked for them to be judged again.
struct HistoryRise {
    var store: StoreName
    var life: SequenceNumber
    var base: SequenceNumber
    var version: VersionInForce
}

extension Target {
    /// Whether some store is concerned by both.
    package func touches(_ other: Target) -> Bool {
        switch (self, other) {
        case (.store(let store), _): other.concerns(store)
        case (_, .store(let store)): concerns(store)
        case (.state, _), (.event, _): states.contains { other.states.contains($0) }
        }
    }
}

/// All that a replay needs to know of a history before the first entry. To find it, the whole file is read, so that
/// nothing is applied of a file that is cut or damaged.
struct HistoryOutline {
    private(set) var log = LogID.none
    private(set) var target: Target?
    private(set) var starts: [HistoryStart] = []
    private(set) var checks: [SnapshotPlace: Snapshot] = [:]
    private(set) var skips: [(sequence: SequenceNumber, target: Target)] = []
    /// The rises of schema versions, in the order of the log.
    private(set) var rises: [HistoryRise] = []
    private(set) var isRecorded = false
    /// The number of the last entry.
    private(set) var last = SequenceNumber.zero

    /// What is known of the entries of one store before they are read from a log.
    ///
    /// - Parameters:
    ///   - store: The store.
    ///   - log: The log.
    ///   - skips: The entries that have no effect on the store.
    ///   - rises: The rises of its schema version, in the order of the log.
    init(
        of store: StoreName, in log: LogID, skipping skips: [SequenceNumber], _ rises: [HistoryRise]
    ) {
        self.log = log
        target = .store(store)
        self.skips = skips.map { ($0, .store(store)) }
        self.rises = rises
    }

    /// Reads and checks a history.
    ///
    /// - Throws: ``HistoryError``.
    init(of path: String) throws(HistoryError) {
        let reader = try HistoryReader(path)
        while let section = try reader.read() {
            switch section {
            case .head(let log, _, _, let target):
                self.log = log
                self.target = target
            case .start(let start): starts.append(start)
            case .check(let place, let snapshot): checks[place] = snapshot
            case .commit(let commit):
                last = commit.last
                commit.forEachEvent { event, _ in
                    switch event {
                    case .skipped(let sequence, let target): skips.append((sequence, target))
                    case .upgraded(let store, let life, let version, let base, let digest):
                        rises.append(
                            HistoryRise(
                                store: store, life: life, base: base,
                                version: VersionInForce(version, migrated: digest)))
                    default: break
                    }
                }
            case .recorded: isRecorded = true
            case .end: break
            }
        }
    }
}
