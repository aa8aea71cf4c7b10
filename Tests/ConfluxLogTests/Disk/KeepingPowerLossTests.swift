import ConfluxVocabulary
import Foundation
import Testing

@testable import ConfluxLog

extension DiskTests {
    /// Power losses and errors at every call of a run that saves snapshots and checkpoints, and that
    /// truncates its log again and again.
    struct KeepingPowerLossTests {
        /// What a run was told, up to one instant.
        private struct Knowledge {
            var commits: [LoggedCommit] = []
            /// How many of the commits were promised to survive a power loss.
            var promised = 0
            /// The highest floor that was requested. `reached` is the highest one that was surely reached.
            var asked = SequenceNumber(1)
            var reached = SequenceNumber(1)
            /// The highest snapshot that was begun. `saved` is the highest one that was surely saved.
            var begun = SequenceNumber.zero
            var saved = SequenceNumber.zero
            /// Whether a truncation is in progress.
            var isTruncating = false
        }

        /// The writer. After an error it opens the log again, and continues.
        private final class Keeper {
            private(set) var known = Knowledge()
            private(set) var errors: [LogError.Code] = []
            private let path: String
            private let settings: SQLiteLogSettings
            private var log: SQLiteLog?
            private var epoch = Epoch.none
            private static let attemptsMax = 5

            init(_ folder: TemporaryFolder, _ durability: SQLiteLogSettings.Durability) {
                path = folder.path
                var settings = SQLiteLogSettings.small(durability)
                // Files of 64 KiB.
                settings.limitBytes = 1 << 20
                settings.vfs = LosingDisk.name
                self.settings = settings
            }

            private var isDurable: Bool { settings.durability == .fsync }

            /// Repeats an action until it succeeds.
            private func persist(_ body: (SQLiteLog) throws(LogError) -> Void) throws {
                for _ in 0..<Self.attemptsMax {
                    do throws(LogError) {
                        if log == nil { try begin() }
                        guard let log else { return }
                        try body(log)
                        return
                    } catch {
                        errors.append(error.code)
                        guard error.code == .unknownOutcome else { continue }
                        log?.close()
                        log = nil
                    }
                }
                throw LogError(.failed, "it does not go on: \(errors)")
            }

            private func begin() throws(LogError) {
                let log = try SQLiteLog(directory: path, settings: settings)
                epoch = try log.claim().epoch
                // The claim's sync writes everything in the log to the disk.
                known.promised = known.commits.count
                known.reached = max(known.reached, log.floor)
                self.log = log
            }

            func run() throws {
                for round in 1...12 {
                    for index in 0..<8 { try append(bytes: index == 7 ? 20_000 : 400) }
                    let last = known.commits.last?.last ?? .zero
                    // It is saved in pieces, with an append between them.
                    let checkpoint = SavedCheckpoint.sample(last.rawValue, bytes: 3_000)
                    try persist { log throws(LogError) in
                        for piece in checkpoint.pieces(of: 1_000) { try log.save(piece) }
                    }
                    try append(bytes: 100)
                    let snapshot = SavedSnapshot.sample(last.rawValue, bytes: 9_000)
                    known.begun = last
                    try persist { log throws(LogError) in
                        try log.keep(snapshot, pieceBytes: 4_000)
                    }
                    if isDurable { known.saved = last }
                    if round > 2 { try truncate() }
                    if round % 5 == 0 {
                        log?.close()
                        log = nil
                    }
                }
                log?.close()
                log = nil
            }

            private func append(bytes: Int) throws {
                let first = (known.commits.last?.last.rawValue ?? 0) + 1
                try persist { log throws(LogError) in
                    // The log has it after all.
                    if log.last.rawValue == first + 1 { return }
                    let commit = LoggedCommit.sample(
                        first...first + 1, epoch: epoch.rawValue, bytes: bytes)
                    if known.commits.last?.first == commit.first { known.commits.removeLast() }
                    known.commits.append(commit)
                    try log.append(commit)
                }
                if isDurable { known.promised = known.commits.count }
            }

            /// Truncates below the older checkpoint, little by little.
            private func truncate() throws {
                let older = known.commits[known.commits.count - 1 - 9 - 1].last
                known.asked = older.next
                known.isTruncating = true
                defer { known.isTruncating = false }
                try persist { log throws(LogError) in
                    while try !log.truncate(below: older.next, limitBytes: 10_000) {}
                }
                if isDurable { known.reached = older.next }
            }
        }

        /// Opens the files that are left, and continues with them.
        private func check(_ files: TemporaryFolder, _ known: Knowledge) throws {
            func fail(_ words: String) -> LogError { LogError(.failed, words) }
            let log = try SQLiteLog(directory: files.path, settings: .small())
            defer { log.close() }
            guard (known.reached...known.asked).contains(log.floor) else {
                throw fail("floor \(log.floor), not in \(known.reached)...\(known.asked)")
            }
            let found = try log.readAll()
            let expected = known.commits.filter { $0.first >= log.floor }
            guard found == Array(expected.prefix(found.count)) else {
                throw fail("\(found.count) commits are not what was written from \(log.floor)")
            }
            let last = log.last
            let promised = known.promised > 0 ? known.commits[known.promised - 1].last : .zero
            guard last >= promised else { throw fail("it ends at \(last), not at \(promised)") }
            guard last == found.last?.last ?? .zero else { throw fail("its end is not read") }
            if log.floor > SequenceNumber(1) {
                let checkpoint = try log.checkpoint(through: last)
                guard let checkpoint, checkpoint.sequence.next >= log.floor,
                    checkpoint == .sample(checkpoint.sequence.rawValue, bytes: 3_000)
                else { throw fail("no checkpoint for the floor \(log.floor)") }
            }
            let snapshots = try log.snapshots()
            guard snapshots.allSatisfy({ $0.sequence <= last && $0.sequence <= known.begun }),
                snapshots.count <= 2, snapshots.last?.sequence ?? .zero >= known.saved
            else { throw fail("snapshots \(snapshots.map(\.sequence)), not up to \(known.saved)") }
            for snapshot in snapshots {
                guard snapshot == .sample(snapshot.sequence.rawValue, bytes: 9_000),
                    try log.contents(of: snapshot, limitBytes: 2_500) == snapshot.contents
                else { throw fail("the snapshot \(snapshot.key) is not what was saved") }
            }
            let claim = try log.claim()
            let more = LoggedCommit.sample(
                last.rawValue + 1...last.rawValue + 1, epoch: claim.epoch.rawValue)
            try log.append(more)
            if last > .zero { try log.keep(.sample(last.rawValue, bytes: 9_000), pieceBytes: 900) }
            guard try log.readAll() == found + [more] else { throw fail("the log does not go on") }
        }

        @Test(arguments: SQLiteLogSettings.Durability.allCases, Survival.allCases)
        func `entries above the floor and their checkpoint survive a power loss at any time`(
            durability: SQLiteLogSettings.Durability, survival: Survival
        ) throws {
            let seed = UInt64.random(in: 0...UInt64.max)
            var random = SeededRandom(seed: seed)
            let folder = TemporaryFolder(isQuick: true)
            let disk = LosingDisk()
            let keeper = Keeper(folder, durability)
            var instants: [(image: LosingDisk.Image, known: Knowledge)] = []
            disk.beforeChange = { disk in instants.append((disk.image, keeper.known)) }
            defer { disk.beforeChange = nil }
            try disk.use { try keeper.run() }
            #expect(instants.count > 200 && keeper.errors.isEmpty)
            #expect(keeper.known.asked > SequenceNumber(150))
            // Some instants of both kinds, since one kind is much more frequent.
            let groups = Dictionary(grouping: instants.indices) { instants[$0].known.isTruncating }
            #expect(groups.count == 2)
            let places = groups.values.flatMap { group in
                Selection(of: group.count, atMost: 5).places.map { group[$0] }
            }
            for index in places {
                let files = instants[index].image.files(after: survival, using: &random)
                do {
                    try check(TemporaryFolder(holding: files), instants[index].known)
                } catch {
                    Issue.record("instant \(index), seed \(seed): \(error)")
                    return
                }
            }
        }

        @Test(arguments: LosingDisk.Fault.allCases)
        func `an error of any call costs nothing that is above the floor`(
            fault: LosingDisk.Fault
        ) throws {
            func run(_ fault: (Int, LosingDisk.Fault)?) throws -> (LosingDisk, Keeper) {
                let folder = TemporaryFolder(isQuick: true)
                let disk = LosingDisk()
                disk.fault = fault
                let keeper = Keeper(folder, .fsync)
                try disk.use { try keeper.run() }
                try check(folder, keeper.known)
                return (disk, keeper)
            }
            let calls = try run(nil).0.callCount
            var (failed, told) = (0, 0)
            for call in Selection(of: calls, atMost: 10).places {
                do {
                    let (disk, keeper) = try run((call, fault))
                    if disk.hasFailed { failed += 1 }
                    if !keeper.errors.isEmpty { told += 1 }
                    var random = SeededRandom(seed: UInt64(call))
                    for survival in Survival.allCases {
                        let files = disk.image.files(after: survival, using: &random)
                        try check(TemporaryFolder(holding: files), keeper.known)
                    }
                } catch {
                    Issue.record("call \(call) of \(calls): \(error)")
                    return
                }
            }
            // Not every call can fail like this, and a copy of the write-ahead log is made again later.
            #expect(told > 0 || failed < 3)
        }
    }
}
