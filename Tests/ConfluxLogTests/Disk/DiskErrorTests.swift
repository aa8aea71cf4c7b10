import ConfluxVocabulary
import Foundation
import Testing

@testable import ConfluxLog

extension DiskTests {
    /// An error at every call to the disk, one at a time.
    struct DiskErrorTests {
        /// A writer that continues after errors as rule 3 demands, and remembers every receipt.
        private final class Writer {
            private let folder: TemporaryFolder
            private let settings: SQLiteLogSettings
            private var log: SQLiteLog?
            private var epoch: UInt64 = 0
            private(set) var receipted: [LoggedCommit] = []
            private(set) var errors: [LogError.Code] = []
            private static let attemptsMax = 5

            init(_ folder: TemporaryFolder, _ durability: SQLiteLogSettings.Durability) {
                self.folder = folder
                var settings = SQLiteLogSettings.small(durability)
                // Files of 64 KiB.
                settings.limitBytes = 1 << 20
                settings.vfs = LosingDisk.name
                self.settings = settings
            }

            /// Opens and claims the log, and tries again after an error.
            ///
            /// - Returns: The log's commits.
            private func begin() throws -> [LoggedCommit] {
                log?.close()
                log = nil
                for _ in 0..<Self.attemptsMax {
                    do throws(LogError) {
                        let log = try SQLiteLog(directory: folder.path, settings: settings)
                        let claim = try log.claim()
                        #expect(claim.epoch.rawValue > epoch, "an epoch was given twice")
                        epoch = claim.epoch.rawValue
                        let found = try log.readAll()
                        self.log = log
                        return found
                    } catch {
                        errors.append(error.code)
                    }
                }
                throw LogError(.failed, "the log does not open: \(errors)")
            }

            func write(_ count: Int) throws {
                if log == nil { _ = try begin() }
                for index in 0..<count {
                    let first = (receipted.last?.last.rawValue ?? 0) + 1
                    try write(first, bytes: index % 15 == 14 ? 20_000 : 300, text: index)
                }
            }

            /// Appends until it has a receipt.
            private func write(_ first: UInt64, bytes: Int, text: Int) throws {
                func commit() -> LoggedCommit {
                    .sample(first...first + UInt64(text % 3), epoch: epoch, bytes: bytes)
                }
                var written = commit()
                for _ in 0..<Self.attemptsMax {
                    do throws(LogError) {
                        try log?.append(written)
                        receipted.append(written)
                        return
                    } catch {
                        errors.append(error.code)
                        // Repeating exactly the same append reports the truth, or that the truth is unknown.
                        guard error.code == .unknownOutcome else { continue }
                    }
                    do throws(LogError) {
                        try log?.append(written)
                        Issue.record("a disk that failed was trusted")
                    } catch {
                        #expect(error.code == .unknownOutcome)
                    }
                    let found = try begin()
                    let known = Array(found.prefix(receipted.count))
                    guard known == receipted else {
                        throw LogError(.failed, "a receipt was given for what is lost")
                    }
                    let rest = Array(found.dropFirst(receipted.count))
                    if rest == [written] {
                        // The log has it after all.
                        receipted.append(written)
                        return
                    }
                    guard rest.isEmpty else {
                        throw LogError(.failed, "\(rest.count) commits that nobody wrote")
                    }
                    written = commit()
                }
                throw LogError(.failed, "no receipt: \(errors)")
            }

            func end() throws {
                if let log {
                    // The first read may fail with the error that the test injects.
                    var found: [LoggedCommit] = []
                    while let more = try? log.read(
                        from: found.last?.last.next ?? SequenceNumber(1), limitBytes: .max),
                        !more.isEmpty
                    {
                        found += more
                    }
                    #expect(found.isEmpty || found == receipted)
                }
                log?.close()
                log = nil
            }
        }

        /// Runs the script with a fault at one call.
        ///
        /// - Returns: The disk, and the commits with receipts; nil if the script makes fewer calls.
        private func run(
            _ fault: (at: Int, LosingDisk.Fault)?, _ durability: SQLiteLogSettings.Durability
        ) throws -> (disk: LosingDisk, receipted: [LoggedCommit], errors: [LogError.Code]) {
            let folder = TemporaryFolder(isQuick: true)
            let disk = LosingDisk()
            disk.fault = fault
            let writer = Writer(folder, durability)
            try disk.use {
                try writer.write(140)
                try writer.end()
                try writer.write(10)
                try writer.end()
            }
            let log = try SQLiteLog(directory: folder.path, settings: .small(durability))
            defer { log.close() }
            #expect(try log.readAll() == writer.receipted)
            #expect(try Followed(folder.path).end?.number == log.last)
            return (disk, writer.receipted, writer.errors)
        }

        @Test func `commits after a failed sync survive a power loss`() throws {
            let folder = TemporaryFolder(isQuick: true)
            let disk = LosingDisk()
            var settings = SQLiteLogSettings.small()
            settings.vfs = LosingDisk.name
            var receipted: [LoggedCommit] = []
            try disk.use {
                let log = try SQLiteLog(directory: folder.path, settings: settings)
                receipted = try log.fill(2)
                disk.failsNextSync = true
                #expect(code { try log.append(.sample(5...5)) } == .unknownOutcome)
                log.close()

                let again = try SQLiteLog(directory: folder.path, settings: settings)
                let claim = try again.claim()
                let found = try again.readAll()
                #expect(found.starts(with: receipted))
                let next = claim.last.rawValue + 1
                let more = LoggedCommit.sample(next...next, epoch: claim.epoch.rawValue)
                try again.append(more)
                receipted = found + [more]
                var random = SeededRandom(seed: 0)
                let lost = try TemporaryFolder(
                    holding: disk.image.files(after: .nothing, using: &random))
                let left = try SQLiteLog(directory: lost.path, settings: .small())
                #expect(try left.readAll() == receipted)
            }
        }

        @Test(arguments: LosingDisk.Fault.allCases, SQLiteLogSettings.Durability.allCases)
        func `an error of any call is reported, and costs no receipt and no number`(
            fault: LosingDisk.Fault, durability: SQLiteLogSettings.Durability
        ) throws {
            let calls = try run(nil, durability).disk.callCount
            #expect(calls > 150)
            var (failed, told) = (0, 0)
            for call in Selection(of: calls, atMost: 10).places {
                do {
                    let (disk, receipted, errors) = try run((call, fault), durability)
                    if disk.hasFailed { failed += 1 }
                    if !errors.isEmpty { told += 1 }
                    #expect(disk.hasFailed || errors.isEmpty)
                    // The disk works again, so that everything is on it in the end.
                    guard durability == .fsync else { continue }
                    var random = SeededRandom(seed: UInt64(call))
                    for survival in Survival.allCases {
                        let folder = try TemporaryFolder(
                            holding: disk.image.files(after: survival, using: &random))
                        let log = try SQLiteLog(directory: folder.path, settings: .small())
                        defer { log.close() }
                        let found = try log.readAll()
                        #expect(try Followed(folder.path).end?.number == log.last)
                        guard found == receipted else {
                            throw LogError(
                                .failed,
                                "\(found.count) of \(receipted.count) commits outlive a power loss")
                        }
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
