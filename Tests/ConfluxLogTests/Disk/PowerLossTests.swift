import ConfluxVocabulary
import Foundation
import Testing

@testable import ConfluxLog

extension DiskTests {
    /// Power losses at every write, sync and truncation of a run.
    struct PowerLossTests {
        /// An instant at which the power may fail.
        private struct Instant {
            let image: LosingDisk.Image
            /// How many of the run's commits had a receipt that promises to survive a power loss.
            let promised: Int
            /// How many commits had been begun.
            let begun: Int
            let claims: UInt64
        }

        /// The instants and commits of a run. Each run makes a log, and fills and copies its write-ahead log again
        /// and again, in three terms.
        private struct Run {
            var instants: [Instant] = []
            var commits: [LoggedCommit] = []
        }

        private func run(_ durability: SQLiteLogSettings.Durability) throws -> Run {
            let folder = TemporaryFolder(isQuick: true)
            let disk = LosingDisk()
            var settings = SQLiteLogSettings.small(durability)
            // Files of 64 KiB.
            settings.limitBytes = 1 << 20
            settings.vfs = LosingDisk.name
            var run = Run()
            var promised = 0
            var claims: UInt64 = 0
            disk.beforeChange = { disk in
                run.instants.append(
                    Instant(
                        image: disk.image, promised: promised, begun: run.commits.count,
                        claims: claims))
            }
            defer { disk.beforeChange = nil }
            try disk.use {
                for term in 1...3 {
                    let log = try SQLiteLog(directory: folder.path, settings: settings)
                    let claim = try log.claim()
                    claims = claim.epoch.rawValue
                    // The claim's sync writes everything in the log to the disk.
                    promised = run.commits.count
                    for index in 0..<60 {
                        let first = log.last.rawValue + 1
                        let isForced = index % 5 == 0
                        let commit = LoggedCommit.sample(
                            first...first + UInt64(index % 3), epoch: claim.epoch.rawValue,
                            bytes: index % 15 == 14 ? 20_000 : 300)
                        run.commits.append(commit)
                        try log.append(commit, forced: isForced)
                        if durability == .fsync || isForced { promised = run.commits.count }
                    }
                    // The first time, the log is not closed properly, and a machine may fail without warning, too.
                    if term > 1 {
                        log.close()
                        promised = run.commits.count
                    }
                }
            }
            return run
        }

        @Test(arguments: SQLiteLogSettings.Durability.allCases, Survival.allCases)
        func `an entry with a receipt survives a power loss at any time`(
            durability: SQLiteLogSettings.Durability, survival: Survival
        ) throws {
            let seed = UInt64.random(in: 0...UInt64.max)
            var random = SeededRandom(seed: seed)
            let run = try run(durability)
            #expect(run.instants.count > 200)
            let rounds = survival == .someSectors ? 3 : 1
            for index in Selection(of: run.instants.count, atMost: 6).places {
                let instant = run.instants[index]
                for _ in 0..<rounds {
                    let files = instant.image.files(after: survival, using: &random)
                    do {
                        try check(instant, files, run.commits, durability)
                    } catch {
                        Issue.record("instant \(index), seed \(seed): \(error)")
                        return
                    }
                }
            }
        }

        /// Opens the files that are left, and continues with them.
        private func check(
            _ instant: Instant, _ files: [LosingDisk.Part: [UInt8]], _ commits: [LoggedCommit],
            _ durability: SQLiteLogSettings.Durability
        ) throws {
            let folder = try TemporaryFolder(holding: files)
            let log = try SQLiteLog(directory: folder.path, settings: .small(durability))
            defer { log.close() }
            let found = try log.readAll()
            guard found == Array(commits.prefix(found.count)) else {
                throw LogError(.failed, "\(found.count) commits are no prefix of what was written")
            }
            guard found.count >= instant.promised, found.count <= instant.begun else {
                throw LogError(
                    .failed,
                    "\(found.count) commits of \(instant.begun); \(instant.promised) had receipts")
            }
            let claim = try log.claim()
            guard claim.epoch.rawValue > instant.claims else {
                throw LogError(.failed, "epoch \(claim.epoch) was given twice")
            }
            let next = log.last.rawValue + 1
            let more = LoggedCommit.sample(next...next, epoch: claim.epoch.rawValue)
            try log.append(more)
            guard try log.readAll() == found + [more] else {
                throw LogError(.failed, "the log does not go on")
            }
        }
    }
}

/// Contains the tests that use ``LosingDisk``, one at a time.
@Suite(.serialized) enum DiskTests {}
