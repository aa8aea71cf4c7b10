import Conflux
import ConfluxProtocol
import ConfluxTesting
import ConfluxVocabulary
import Foundation
import Testing

@Suite struct `Histories that can't be replayed` {
    private func history() throws -> MadeHistory {
        let history = try MadeHistory()
        history.event(
            .created(
                try #require(StoreName("ledger/shared")), schemaVersion: 1,
                initial: MadeHistory.state(total: 0, count: 0)))
        try history.actions([1, 2, 3], for: "ledger/shared")
        return history
    }

    private func code(of path: String) -> HistoryError.Code? {
        do throws(HistoryError) {
            _ = try replay(path, with: .model(Ledger.self))
            return nil
        } catch {
            return error.code
        }
    }

    private func bytes(_ path: String) throws -> [UInt8] {
        Array(try #require(FileManager.default.contents(atPath: path)))
    }

    @Test func `a file that is cut anywhere is refused`() throws {
        let history = try history()
        _ = try history.record()
        let whole = try bytes(history.recording)
        for count in 0..<whole.count {
            let path = history.folder + "/cut"
            try Data(whole.prefix(count)).write(to: URL(fileURLWithPath: path))
            #expect(code(of: path) == (count < 15 ? .notAHistory : .cut), "\(count)")
        }
    }

    @Test func `a file with a changed byte is refused`() throws {
        let history = try history()
        _ = try history.record()
        let whole = try bytes(history.recording)
        for index in whole.indices {
            var damaged = whole
            damaged[index] ^= 0x10
            let path = history.folder + "/damaged"
            try Data(damaged).write(to: URL(fileURLWithPath: path))
            let expected: [HistoryError.Code] =
                index < 14 ? [.notAHistory] : index == 14 ? [.newerFormat] : [.damaged, .cut]
            #expect(code(of: path).map { expected.contains($0) } == true, "\(index)")
        }
    }

    @Test func `parts of two files are refused`() throws {
        let (one, other) = (try history(), try history())
        _ = try one.record()
        _ = try other.record()
        let (first, second) = (try bytes(one.recording), try bytes(other.recording))
        #expect(first.count == second.count)
        let path = one.folder + "/mixed"
        try Data(first.prefix(first.count / 2) + second.dropFirst(first.count / 2))
            .write(to: URL(fileURLWithPath: path))
        #expect(code(of: path) == .damaged)
    }

    @Test func `entries of another log are refused`() throws {
        let history = try history()
        history.commit(of: LogID.random()) { builder in
            builder.append(.left(Incarnation(1)))
        }
        try history.write()
        #expect(code(of: history.path) == .otherLog)
    }

    @Test func `missing entries, something behind the end, and other files are refused`() throws {
        let history = try history()
        _ = try history.record()
        let longer = history.folder + "/longer"
        try Data(try bytes(history.recording) + [0]).write(to: URL(fileURLWithPath: longer))
        #expect(code(of: longer) == .damaged)
        try Data("{}".utf8).write(to: URL(fileURLWithPath: longer))
        #expect(code(of: longer) == .notAHistory)
        #expect(code(of: history.folder + "/nothing") == .unreadable)
        #expect(code(of: history.folder) == .unreadable)
    }

    @Test func `a history without anything to compare with is refused`() throws {
        let history = try history()
        try history.write()
        #expect(code(of: history.path) == .nothingToCompare)
    }

    /// As an export of a store that does not exist: actions for every store of the state are in it, too.
    private func empty() throws -> MadeHistory {
        let history = try MadeHistory()
        history.event(.left(Incarnation(1)))
        try history.actions([1, 2], for: "ledger/*")
        return history
    }

    @Test func `a history whose entries concern no store is neither recorded nor replayed`() throws
    {
        let history = try empty()
        let error = #expect(throws: HistoryError.self) { try history.record() }
        #expect(error?.code == .nothingToCompare)
        #expect(error?.message.contains("no entry concerns a store") == true)
        #expect(!FileManager.default.fileExists(atPath: history.recording))
        // A recording of it, as earlier programs wrote it.
        history.add(.recorded(HistoryRecord()))
        try history.write()
        #expect(code(of: history.path) == .nothingToCompare)
    }

    @Test func `a state of a store that does not live is nothing to compare with`() throws {
        let history = try empty()
        let last = SequenceNumber(2)
        history.add(
            .check(
                SnapshotPlace(
                    store: try #require(StoreName("ledger/shared")), life: SequenceNumber(1),
                    sequence: last), MadeHistory.snapshot(last, total: 1, count: 1)))
        try history.write()
        #expect(code(of: history.path) == .nothingToCompare)
    }

    @Test func `a store without entries has nothing to record`() throws {
        let history = try MadeHistory()
        history.event(
            .created(
                try #require(StoreName("ledger/shared")), schemaVersion: 1,
                initial: MadeHistory.state(total: 0, count: 0)))
        let error = #expect(throws: HistoryError.self) { try history.record() }
        #expect(error?.code == .nothingToCompare)
    }

    @Test func `a state that was not given is named`() throws {
        let history = try history()
        _ = try history.record()
        do throws(HistoryError) {
            _ = try replay(history.recording, with: .model(Stock.self))
            Issue.record("it was replayed")
        } catch {
            #expect(error.code == .unknownState && error.message.contains("ledger/shared"))
        }
    }

    @Test func `a first state that can't be read is named`() throws {
        let history = try MadeHistory()
        history.event(
            .created(
                try #require(StoreName("ledger/shared")), schemaVersion: 1,
                initial: EncodedState(coding: .json, bytes: Array("{}".utf8)[...])))
        try history.write()
        do throws(HistoryError) {
            _ = try record(history.path, to: history.recording, with: .model(Ledger.self))
            Issue.record("it was recorded")
        } catch {
            #expect(error.code == .unreadableState && error.message.contains("ledger/shared"))
        }
        #expect(!FileManager.default.fileExists(atPath: history.recording))
    }
}
