import Conflux
import ConfluxHashing
import ConfluxNode
import ConfluxProtocol
import ConfluxTesting
import ConfluxVocabulary
import Foundation
import Testing

/// Money that is added and taken.
struct Ledger: Model {
    static let name = "ledger"
    var total = 0
    var count = 0

    struct TooPoor: Error {}

    func check(_ action: LedgerAction, _ context: ActionContext) throws {
        if total + action.amount < 0 { throw TooPoor() }
    }

    mutating func apply(_ action: LedgerAction, _ context: ActionContext) {
        total += action.amount
        count += 1
    }
}

struct LedgerAction: Codable, Sendable, Equatable {
    var amount: Int
}

/// A later version that refuses nothing.
struct LaxLedger: Model {
    static let name = "ledger"
    var total = 0
    var count = 0

    mutating func apply(_ action: LedgerAction, _ context: ActionContext) {
        total += action.amount
        count += 1
    }
}

/// A later version that is wrong about large amounts.
struct WrongLedger: Model {
    static let name = "ledger"
    var total = 0
    var count = 0

    func check(_ action: LedgerAction, _ context: ActionContext) throws {
        if total + action.amount < 0 { throw Ledger.TooPoor() }
    }

    mutating func apply(_ action: LedgerAction, _ context: ActionContext) {
        total += action.amount == 77 ? 78 : action.amount
        count += 1
    }
}

/// A later version whose state has another form.
struct NewLedger: Model {
    static let name = "ledger"
    static let schemaVersion = 2
    var sum = 0
    var count = 0

    static func migrate(_ old: SnapshotReader, from version: Int) throws -> NewLedger {
        struct First: Decodable { var total, count: Int }
        let first = try old.decode(First.self)
        return NewLedger(sum: first.total, count: first.count)
    }

    func check(_ action: LedgerAction, _ context: ActionContext) throws {
        if sum + action.amount < 0 { throw Ledger.TooPoor() }
    }

    mutating func apply(_ action: LedgerAction, _ context: ActionContext) {
        sum += action.amount
        count += 1
    }
}

/// A later version that refuses large amounts once it is in force.
struct CappedLedger: Model {
    static let name = "ledger"
    static let schemaVersion = 2
    static let oldestSchemaVersion = 1
    var total = 0
    var count = 0

    struct TooMuch: Error {}

    func check(_ action: LedgerAction, _ context: ActionContext) throws {
        if context.schemaVersion >= 2, action.amount > 10 { throw TooMuch() }
    }

    mutating func apply(_ action: LedgerAction, _ context: ActionContext) {
        total += action.amount
        count += 1
    }
}

/// A history that a test makes, in a folder that is removed with this object.
final class MadeHistory {
    let folder = NSTemporaryDirectory() + "conflux-history-\(Identifier.random())"
    let log = LogID.random()
    private(set) var sections: [HistorySection] = []
    private(set) var next: SequenceNumber
    private var counter: UInt64 = 1

    var path: String { folder + "/history" }
    var recording: String { folder + "/recording" }

    /// - Parameter first: The first entry.
    /// - Throws: Why the folder can't be made.
    init(from first: UInt64 = 1) throws {
        next = SequenceNumber(first)
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        sections = [.head(log: log, from: next, through: SequenceNumber(.max >> 1), target: nil)]
    }

    deinit {
        do {
            try FileManager.default.removeItem(atPath: folder)
        } catch {
            Issue.record("\(folder) stays: \(error)")
        }
    }

    func add(_ section: HistorySection) { sections.append(section) }

    static func state(total: Int, count: Int) -> EncodedState {
        EncodedState(
            coding: .json, bytes: Array(#"{"count":\#(count),"total":\#(total)}"#.utf8)[...])
    }

    static func snapshot(
        _ sequence: SequenceNumber, total: Int, count: Int, version: UInt32 = 1
    ) -> Snapshot {
        Snapshot(
            sequence: sequence, schemaVersion: version, state: state(total: total, count: count))
    }

    static func digest(total: Int, count: Int) -> Digest {
        Digest(of: Array(state(total: total, count: count).bytes))
    }

    /// Adds a commit.
    ///
    /// - Returns: The number of its first entry.
    @discardableResult
    func commit(
        of log: LogID? = nil, _ fill: (inout CommitBuilder) throws -> Void
    ) rethrows -> SequenceNumber {
        var builder = CommitBuilder(
            log: log ?? self.log, epoch: Epoch(1), predecessor: Epoch(1), first: next)
        try fill(&builder)
        let body = builder.finish(timestamp: Timestamp(1)).dropFirst(Frame.size)
        do {
            let commit = try Commit.decode(body: body)
            sections.append(.commit(commit))
            defer { next = commit.last.next }
            return commit.first
        } catch {
            preconditionFailure("\(error)")
        }
    }

    @discardableResult
    func event(_ event: LogEvent) -> SequenceNumber { commit { $0.append(event) } }

    /// Adds actions in one commit.
    @discardableResult
    func actions(_ amounts: [Int], for target: String) throws -> SequenceNumber {
        let target = try #require(Target(target))
        return commit { builder in
            var batch = BatchBuilder()
            for amount in amounts {
                batch.append(
                    target: BatchTarget(target: target, schemaVersion: 1, coding: .json),
                    payload: Array(#"{"amount":\#(amount)}"#.utf8))
            }
            builder.append(
                batch.finish(firstCounter: counter, settled: 0), from: Incarnation(1))
            counter += UInt64(amounts.count)
        }
    }

    /// Writes the file.
    func write() throws {
        let writer = try HistoryWriter(path)
        for section in sections { try writer.write(section) }
        try writer.complete()
    }

    /// Records the history.
    func record(with model: (some Model).Type = Ledger.self) throws -> ReplayReport {
        try write()
        return try ConfluxTesting.record(path, to: recording, with: .model(model))
    }
}
