import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Runs a history with the code at hand, and compares or records what comes of it.
///
/// **Where the expected values come from.** A log has actions, and neither outcomes nor digests. So a history has two
/// kinds of expected values:
///
/// - *Checks*: states of the log's own snapshots, which more than half of the replicas had. They are few, and they are
///   production's own. A difference is located in the state, and lies between two checks.
/// - *Records*: what a program made of every entry when the history was recorded: each entry that had no effect and
///   why, and digests at the entries that ``PointPlanner`` chose. A refusal is compared entry by entry. A digest names
///   the entry if it was noted after each one, and otherwise a few entries.
///
/// A later program is compared with both.
package struct HistoryReplay {
    private let path: String
    private let outline: HistoryOutline
    private let states: [Name: ReplayedState]
    private let replayer: Replayer
    /// An action in words.
    private let words: (any Sendable) -> String
    private var report = ReplayReport()
    /// Whether an outcome of an entry was compared.
    private var hasComparedOutcomes = false

    /// Reads a history, and begins its stores.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - states: The states of its stores.
    ///   - words: Puts an action in words.
    /// - Throws: ``HistoryError``.
    package init(
        _ path: String, with states: [ReplayedState], _ words: @escaping (any Sendable) -> String
    ) throws(HistoryError) {
        self.path = path
        self.words = words
        self.states = Dictionary(states.map { ($0.name, $0) }) { $1 }
        let outline = try HistoryOutline(of: path)
        self.outline = outline
        replayer = Replayer(of: outline, self.states)
        for start in outline.starts { try replayer.begin(start) }
    }

    // MARK: Comparing

    /// Compares the code at hand with the history's checks and records, up to the first difference.
    ///
    /// - Throws: ``HistoryError``, also if the history has nothing to compare with.
    package consuming func compare() throws(HistoryError) -> ReplayReport {
        guard outline.isRecorded || !outline.checks.isEmpty else {
            throw HistoryError(
                code: .nothingToCompare,
                message: """
                    The history \(path) has no snapshot behind its start and no recorded outcomes, so there is \
                    nothing to compare with. Record it first.
                    """)
        }
        let reader = try HistoryReader(path)
        var waiting: Commit?
        while let section = try reader.read() {
            switch section {
            case .commit(let commit):
                if let former = waiting { try compare(former, with: nil) }
                waiting = commit
            case .recorded(let record):
                if let commit = waiting { try compare(commit, with: record) }
                waiting = nil
            case .head, .start, .check, .end: break
            }
            if report.difference != nil { return report }
        }
        if let former = waiting { try compare(former, with: nil) }
        guard report.difference != nil || report.states > 0 || hasComparedOutcomes else {
            throw nothingToCompare
        }
        return report
    }

    /// The failure for a history of which a replay would find no difference, whatever the code does.
    private var nothingToCompare: HistoryError {
        HistoryError(
            code: .nothingToCompare,
            message: """
                In the history \(path), no entry concerns a store that lives, and no state of a store is there \
                to compare with. Export it again, with the stores that you mean and with their actions.
                """)
    }

    private mutating func compare(
        _ commit: Commit, with record: HistoryRecord?
    ) throws(HistoryError) {
        let before = replayer.concernedCount
        let (found, finding) = try run(commit, at: record?.points ?? [], comparing: true)
        if record != nil, replayer.concernedCount > before { hasComparedOutcomes = true }
        // A different outcome says more than the different state that it leads to.
        var findings: [ReplayDifference] = []
        if let record, let difference = difference(record.refusals, found.refusals, in: commit) {
            findings.append(difference)
        }
        if let finding { findings.append(finding) }
        report.difference = findings.min { $0.entries.upperBound < $1.entries.upperBound }
    }

    /// The first entry whose outcome differs.
    private func difference(
        _ expected: [HistoryRecord.Refusal], _ found: [HistoryRecord.Refusal], in commit: Commit
    ) -> ReplayDifference? {
        var index = 0
        while index < max(expected.count, found.count) {
            let one = index < expected.count ? expected[index] : nil
            let other = index < found.count ? found[index] : nil
            index += 1
            guard one != other else { continue }
            // The one that comes first is missing on the other side.
            let isExpectedFirst =
                other.map { other in
                    one.map { ($0.sequence, $0.store) <= (other.sequence, other.store) } ?? false
                } ?? true
            guard let first = isExpectedFirst ? one : other else { return nil }
            let isSame = one?.sequence == other?.sequence && one?.store == other?.store
            return finding(
                first.store, first.sequence...first.sequence, count: 1, in: commit,
                expected: isExpectedFirst ? Self.text(refused: first.reason) : "applied",
                found: isSame
                    ? Self.text(refused: other?.reason ?? "")
                    : isExpectedFirst ? "applied" : Self.text(refused: first.reason))
        }
        return nil
    }

    private static func text(refused reason: String) -> String { "refused: \(reason)" }

    private func finding(
        _ store: StoreName, _ entries: ClosedRange<SequenceNumber>, count: Int, in commit: Commit,
        path: String? = nil, expected: String, found: String
    ) -> ReplayDifference {
        let action = commit.action(at: entries.upperBound).map { row, payload in
            do {
                return try states[store.state].map { words(try $0.action(payload, row.coding)) }
                    ?? "an action of an unknown state"
            } catch {
                return "an action that can't be decoded: \(error)"
            }
        }
        return ReplayDifference(
            store: "\(store)", entries: entries, count: count, action: action, path: path,
            expected: expected, found: found)
    }

    private func finding(_ stop: Replayer.Stop, in commit: Commit) -> ReplayDifference {
        finding(
            stop.store, stop.sequence...stop.sequence, count: 1, in: commit, expected: "applied",
            found: "the store stopped: \(stop.message)")
    }

    // MARK: Recording

    /// Writes the history anew, with what the code at hand makes of it.
    ///
    /// - Parameter target: The file. It is not written if the code at hand differs from the history's checks.
    /// - Returns: The figures, and the first difference from a check.
    /// - Throws: ``HistoryError``, also if a replay would have nothing to compare with.
    package consuming func record(to target: String) throws(HistoryError) -> ReplayReport {
        let reader = try HistoryReader(path)
        let writer = try HistoryWriter(target)
        var planner = PointPlanner()
        for start in outline.starts {
            planner.note(start.snapshot.state.bytes.count, of: start.store)
        }
        while let section = try reader.read() {
            switch section {
            case .head, .start, .check: try writer.write(section)
            case .commit(let commit):
                try writer.write(section)
                let points = planner.points(in: commit, isLast: commit.last == outline.last) {
                    [replayer] in replayer.stores(concernedBy: $0)
                }
                let (record, finding) = try run(commit, at: points, comparing: false) {
                    planner.note($0, of: $1)
                }
                if let finding {
                    report.difference = finding
                    return report
                }
                try writer.write(.recorded(record))
            // What another program made of it is replaced.
            case .recorded, .end: break
            }
        }
        guard replayer.concernedCount > 0 || report.states > 0 else { throw nothingToCompare }
        try writer.complete()
        return report
    }

    // MARK: Running

    /// Applies a commit.
    ///
    /// - Parameters:
    ///   - commit: The commit.
    ///   - points: Where the digests of states are wanted.
    ///   - isComparing: Whether the digests of `points` are the expected ones.
    ///   - note: Gets the size of each encoded state.
    /// - Returns: What came of the commit; and the first difference from a check, or from an expected digest.
    /// - Throws: ``HistoryError`` for a store that can't begin.
    private mutating func run(
        _ commit: Commit, at points: [HistoryRecord.Point], comparing isComparing: Bool,
        _ note: (Int, StoreName) -> Void = { _, _ in }
    ) throws(HistoryError) -> (HistoryRecord, ReplayDifference?) {
        var record = HistoryRecord()
        let numbers = commit.first...commit.last
        let checks = outline.checks.filter { numbers.contains($0.key.sequence) }
        let cuts = replayer.cuts(of: commit).union(points.map(\.sequence))
            .union(checks.map(\.key.sequence))
        var rest = points[...]
        var finding: ReplayDifference?
        for part in commit.cut(behind: cuts) {
            if let stop = try replayer.apply(part, &record.refusals) {
                finding = self.finding(stop, in: commit)
                break
            }
            for (place, snapshot) in checks.sorted(by: { $0.key.store < $1.key.store })
            where place.sequence == part.last && replayer.life(of: place.store) == place.life {
                finding = finding ?? check(place.store, snapshot, in: commit)
            }
            while let point = rest.first, point.sequence <= part.last {
                rest.removeFirst()
                guard finding == nil, let version = replayer.version(of: point.store) else {
                    continue
                }
                // This program no longer understands the version that the recording one judged by.
                if isComparing, version != point.version {
                    report.uncomparedStates.insert(point.store.state)
                    continue
                }
                let bytes = encoding(of: point.store)
                guard case .success(let bytes) = bytes else {
                    finding = mismatch(point.store, in: commit, expected: "a state", bytes)
                    continue
                }
                note(bytes.count, point.store)
                let digest = Digest(of: bytes).number
                record.points.append(
                    HistoryRecord.Point(
                        sequence: point.sequence, store: point.store, version: version,
                        digest: digest))
                report.states += 1
                if isComparing, digest != point.digest {
                    finding = mismatch(
                        point.store, in: commit, expected: "the digest \(Self.hex(point.digest))",
                        .success([]), found: "the digest \(Self.hex(digest))")
                } else {
                    _ = replayer.pending(of: point.store, isEqual: true)
                }
            }
            if finding == nil, let stop = replayer.rise(behind: part.last) {
                finding = self.finding(stop, in: commit)
            }
            if finding != nil { break }
        }
        record.refusals.sort { ($0.sequence, $0.store) < ($1.sequence, $1.store) }
        report.refusals += UInt64(record.refusals.count)
        report.last = commit.last
        for case .batch(_, let batch) in commit.blocks {
            // No store takes what is for timers or leases.
            let isCounted = batch.targets.map { row in
                row.target != .timers && row.target != .leases
                    && outline.target.map { row.target.touches($0) } ?? true
            }
            batch.forEachEntry { row, _ in if isCounted[row] { report.actions += 1 } }
        }
        return (record, finding)
    }

    private static func hex(_ digest: UInt64) -> String {
        let digits = String(digest, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    private func encoding(of store: StoreName) -> Result<[UInt8], any Error> {
        Result { try replayer.encoding(of: store) }
    }

    /// Compares a store with a state of the log's replicas, in the form of the version in force.
    private mutating func check(
        _ store: StoreName, _ snapshot: Snapshot, in commit: Commit
    ) -> ReplayDifference? {
        report.states += 1
        let found = encoding(of: store)
        guard let state = states[store.state], let version = replayer.version(of: store) else {
            return nil
        }
        let expected = Result {
            snapshot.schemaVersion == version
                ? Array(snapshot.state.bytes) : try state.canonical(snapshot, version)
        }
        guard case .success(let bytes) = found, case .success(let wanted) = expected else {
            return mismatch(
                store, in: commit, expected: Self.text(expected), found, found: Self.text(found))
        }
        guard bytes != wanted else {
            _ = replayer.pending(of: store, isEqual: true)
            return nil
        }
        guard let change = JSONChange.first(from: wanted, to: bytes) else {
            return mismatch(store, in: commit, expected: Self.text(expected), found)
        }
        return mismatch(
            store, in: commit, path: "\(change.path)", expected: Self.text(change.old), found,
            found: Self.text(change.new))
    }

    /// A difference that one of the entries since the last equal state made.
    private func mismatch(
        _ store: StoreName, in commit: Commit, path: String? = nil, expected: String,
        _ state: Result<[UInt8], any Error>, found: String? = nil
    ) -> ReplayDifference {
        let pending = replayer.pending(of: store, isEqual: false)
        let last = pending?.last ?? replayer.life(of: store) ?? commit.last
        return finding(
            store, (pending?.first ?? last)...last, count: pending?.count ?? 0, in: commit,
            path: path, expected: expected, found: found ?? Self.text(state))
    }

    private static let textMax = 200

    private static func text(_ value: JSONValue?) -> String {
        guard let value else { return "nothing" }
        let text = value.description
        return text.count > textMax ? "\(text.prefix(textMax))…" : text
    }

    private static func text(_ state: Result<[UInt8], any Error>) -> String {
        switch state {
        case .success(let bytes): "a state of \(bytes.count) bytes"
        case .failure(let error): "no state: \(error)"
        }
    }
}
