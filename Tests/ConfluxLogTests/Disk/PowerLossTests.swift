import ConfluxVocabulary
import Foundation
import Testing

@testable import ConfluxLog

extension DiskTests {
    /// Power losses at every write, sync and truncation of a run.
    struct PowerLossTests {
        /// An instant at which the power may go.
        private struct Instant {
            let image: LosingDisk.Image
            /// How many of the run's commits had been given a receipt that outlives the machine.
            let promised: Int
            /// How many had been begun.
            let begun: Int
            let claims: UInt64
        }

        /// What every run does: it makes a log, and fills and copies its write-ahead log again and
        /// again, in three tenures.
        private struct Run {
            var instants: [Instant] = []
            var commits: [LoggedCommit] = []
        }

        private func run(_ durability: SQLiteLogSettings.Durability) throws -> Run {
            let folder = TemporaryFolder(isQuick: true)
            let disk = LosingDisk()
            var settings = SQLiteLogSettings.small(durability)
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
                for tenure in 1...3 {
                    let log = try SQLiteLog(directory: folder.path, settings: settings)
                    let claim = try log.claim()
                    claims = claim.epoch.rawValue
                    // What was in the log is on the disk with the claim's sync.
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
                    // Not closed in order the first time: the machine is not asked before, either.
                    if tenure > 1 {
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
            for index in Selection(of: run.instants.count, atMost: 15).places {
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

        /// Opens what is left, and goes on with it.
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

/// Tests that take turns with ``LosingDisk``.
@Suite(.serialized) enum DiskTests {}
