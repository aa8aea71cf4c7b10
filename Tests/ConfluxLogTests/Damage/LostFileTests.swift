import ConfluxVocabulary
import Foundation
import Testing

@testable import ConfluxLog

/// A log whose folder has lost a file, or got a wrong one: it is refused, or what it serves is right. It is never
/// shorter without a word.
@Suite final class LostFileTests {
    /// How the log's owner ended.
    enum Ending: CaseIterable {
        case killed, closed
    }

    /// What happened to a file.
    enum Loss: CaseIterable {
        case removed, emptied, zeroed, halved, swapped
    }

    /// What the log had before.
    struct History: CaseIterable, CustomTestStringConvertible {
        let terms: Int
        let hasCheckpoints: Bool
        let ending: Ending

        static var allCases: [History] {
            [1, 2].flatMap { terms in
                [false, true].flatMap { hasCheckpoints in
                    Ending.allCases.map {
                        History(terms: terms, hasCheckpoints: hasCheckpoints, ending: $0)
                    }
                }
            }
        }

        var testDescription: String {
            "\(terms) terms, \(hasCheckpoints ? "with" : "no") checkpoints, \(ending)"
        }
    }

    /// A log that was ended, and what it had.
    private struct Ended {
        let folder: TemporaryFolder
        let id: LogID
        let commits: [LoggedCommit]
        var last: SequenceNumber { commits.last?.last ?? .zero }
    }

    private static var settings: SQLiteLogSettings {
        var settings = SQLiteLogSettings.small()
        // Files of 64 KiB.
        settings.limitBytes = 1 << 20
        return settings
    }

    private static func copy(_ folder: TemporaryFolder) throws -> TemporaryFolder {
        let copy = TemporaryFolder(isQuick: true)
        try FileManager.default.copyItem(atPath: folder.path, toPath: copy.path)
        return copy
    }

    private static func make(_ history: History, bytes: Int) throws -> Ended {
        let folder = TemporaryFolder(isQuick: true)
        var commits: [LoggedCommit] = []
        for term in 1...history.terms {
            let log = try SQLiteLog(directory: folder.path, settings: settings)
            commits += try log.fill(10, bytes: bytes)
            if history.hasCheckpoints {
                let end = log.last.rawValue
                for number in [end - 2, end] { try log.save(.sample(number)) }
                try log.keep(.sample(end))
            }
            // Something that is in no checkpoint.
            commits += try log.appendMore(3, bytes: bytes)
            if term == history.terms, history.ending == .killed {
                return Ended(folder: try copy(folder), id: log.id, commits: commits)
            }
            log.close()
        }
        let file = try SQLiteLogFile(directory: folder.path)
        defer { file.close() }
        return Ended(folder: folder, id: file.id, commits: commits)
    }

    /// Changes a file.
    ///
    /// - Returns: False if that changes nothing.
    private static func apply(
        _ loss: Loss, to name: String, in folder: TemporaryFolder, other: TemporaryFolder
    ) throws -> Bool {
        let url = URL(filePath: "\(folder.path)/\(name)")
        let bytes = try Data(contentsOf: url)
        let new: Data?
        switch loss {
        case .removed: new = nil
        case .emptied: new = Data()
        case .zeroed: new = Data(count: bytes.count)
        case .halved: new = bytes.prefix(bytes.count / 2)
        case .swapped:
            let source = URL(filePath: "\(other.path)/\(name)")
            guard FileManager.default.fileExists(atPath: source.path) else { return false }
            new = try Data(contentsOf: source)
        }
        guard new != bytes else { return false }
        if let new { try new.write(to: url) } else { try FileManager.default.removeItem(at: url) }
        return true
    }

    @Test(arguments: History.allCases)
    func `a file that is gone, empty, cut or of another log is named, or nothing is lost`(
        history: History
    ) throws {
        let ended = try Self.make(history, bytes: 10_000)
        let other = try Self.make(history, bytes: 10_001)
        let names = try FileManager.default.contentsOfDirectory(atPath: ended.folder.path).sorted()
        #expect(names.contains { $0.hasSuffix(".conflux") } && names.contains("log.sqlite-wal"))
        #expect(names.filter { $0.hasPrefix("entries-") }.count > 1)
        var refusals = 0
        for name in names {
            for loss in Loss.allCases {
                let place = Comment("\(name) \(loss)")
                let read = try Self.copy(ended.folder)
                guard
                    try Self.apply(loss, to: name, in: read, other: other.folder)
                else { continue }
                let written = try Self.copy(read)
                let isWhole = try Self.readsWhole(read, ended, place)
                let isOpened = try Self.opens(written, ended, place)
                if !isOpened { refusals += 1 }
                if name.hasPrefix("entries-") { #expect(!isWhole && !isOpened, place) }
                if name == "lock" { #expect(isWhole && isOpened, place) }
            }
        }
        #expect(refusals > 10)
    }

    /// Reads a log like `conflux log --verify`.
    ///
    /// - Returns: Whether it is called intact.
    private static func readsWhole(
        _ folder: TemporaryFolder, _ ended: Ended, _ comment: Comment
    ) throws -> Bool {
        let file: SQLiteLogFile
        do throws(LogError) {
            file = try SQLiteLogFile(directory: folder.path)
        } catch {
            #expect([.damaged, .notALog].contains(error.code), comment)
            expectPlace(error, folder, comment)
            return false
        }
        defer { file.close() }
        #expect(file.id == ended.id, comment)
        #expect(file.last == ended.last, comment)
        do throws(LogError) {
            var next = file.floor
            while next <= file.last {
                let found = try file.read(from: next, through: file.last, limitBytes: 30_000)
                #expect(found.allSatisfy(ended.commits.contains), comment)
                next = found.last?.last.next ?? file.last.next
            }
            _ = try file.chain()
            let snapshots = try file.snapshots()
            for snapshot in snapshots {
                let bytes = try file.readSnapshot(of: snapshot.key, from: 0, limitBytes: .max)
                #expect(bytes != nil, comment)
            }
            return true
        } catch {
            #expect(error.code == .damaged, comment)
            return false
        }
    }

    /// Opens a log like a sequencer.
    ///
    /// - Returns: Whether it is served.
    private static func opens(
        _ folder: TemporaryFolder, _ ended: Ended, _ comment: Comment
    ) throws -> Bool {
        do {
            let log = try SQLiteLog(directory: folder.path, settings: settings)
            defer { log.close() }
            #expect(log.id == ended.id, comment)
            let claim = try log.claim()
            #expect(claim.last == ended.last, comment)
            #expect(claim.epoch > (ended.commits.last?.epoch ?? .none), comment)
            try expectNothingWrong(log, ended, comment)
            try log.append(
                .sample(
                    claim.last.rawValue + 1...claim.last.rawValue + 1,
                    epoch: claim.epoch.rawValue))
            return true
        } catch let error as LogError {
            #expect([.damaged, .notALog].contains(error.code), comment)
            expectPlace(error, folder, comment)
            return false
        }
    }

    /// Reads everything: what is not reported as damaged is what was written.
    private static func expectNothingWrong(
        _ log: SQLiteLog, _ ended: Ended, _ comment: Comment
    ) throws {
        var left = ended.commits[...]
        while let first = left.first {
            do throws(LogError) {
                let found = try log.read(from: first.first, limitBytes: 30_000)
                #expect(!found.isEmpty && found == Array(left.prefix(found.count)), comment)
                left = left.dropFirst(max(1, found.count))
            } catch {
                #expect(error.code == .damaged, comment)
                let numbers = try #require(error.numbers, comment)
                #expect(numbers.contains(first.first), comment)
                left = left.drop { $0.first <= numbers.upperBound }
            }
        }
    }

    private static func expectPlace(
        _ error: LogError, _ folder: TemporaryFolder, _ comment: Comment
    ) {
        #expect(
            error.numbers != nil || error.message.contains(folder.path),
            "\(comment): \(error.message)")
    }
}

extension ActionLog {
    /// Appends commits of two entries each behind the last one, in the epoch of that one.
    fileprivate func appendMore(_ count: Int, bytes: Int) throws -> [LoggedCommit] {
        let epoch = try read(from: last, limitBytes: 1).last?.epoch ?? .none
        return try (0..<count).map { _ in
            let first = last.rawValue + 1
            let commit = LoggedCommit.sample(
                first...first + 1, epoch: epoch.rawValue, bytes: bytes)
            try append(commit)
            return commit
        }
    }
}
