import Conflux
import ConfluxBuiltins
import ConfluxHashing
import ConfluxVocabulary
import Foundation
import Spawning
import Testing

/// One line of `conflux log --json`.
struct LogLine {
    enum Content {
        case action(JSONValue, target: String, incarnation: UInt64, counter: UInt64)
        case event(String)
    }

    let sequence: UInt64
    let epoch: UInt64
    let timestamp: UInt64
    let content: Content

    /// More than the bytes of any action that a test looks into. Parsing a longer line is slow in a debug build.
    private static let wholeBytesMax = 900 << 10

    init(_ line: String) throws {
        let value = try object(line.utf8.count > Self.wholeBytesMax ? Self.cut(line) : line)
        sequence = try #require(value[key: "sequence"]?.number)
        epoch = try #require(value[key: "epoch"]?.number)
        timestamp = try #require(value[key: "timestamp"]?.number)
        let kind = try #require(value[key: "kind"]?.string)
        guard kind == "action" else {
            content = .event(kind)
            return
        }
        let origin = try #require(value[key: "origin"]?.string).split(separator: ":")
        content = .action(
            try #require(value[key: "action"]), target: try #require(value[key: "target"]?.string),
            incarnation: try #require(UInt64(origin[0])), counter: try #require(UInt64(origin[1])))
    }
}

extension LogLine {
    /// The line with its action, which is its first member and a string, replaced by an empty string.
    private static func cut(_ line: String) throws -> String {
        let tail = Array(line.utf8.suffix(1_000))
        guard let end = tail.firstRange(of: Array(#"","epoch":"#.utf8)) else {
            throw Failure("a long line without an epoch: \(line.prefix(400))")
        }
        return #"{"action":""# + String(decoding: tail[end.lowerBound...], as: UTF8.self)
    }
}

/// Checks over all lines of a log that their numbers have no gaps and their times don't go back.
struct LogOrder {
    /// The entries that can't be read: all of their lines are missing, and no others.
    private let damage: ClosedRange<UInt64>?
    private(set) var last: UInt64 = 0
    private var epoch: UInt64 = 0
    private var timestamp: UInt64 = 0

    init(without damage: ClosedRange<UInt64>? = nil) {
        self.damage = damage
    }

    mutating func take(_ line: LogLine) throws {
        let next = last + 1
        guard line.sequence == (next == damage?.lowerBound ? damage!.upperBound + 1 : next) else {
            throw Failure("entry \(line.sequence) follows entry \(last)")
        }
        guard line.epoch >= epoch, line.timestamp >= timestamp else {
            throw Failure("epoch or time goes back at entry \(line.sequence)")
        }
        (last, epoch, timestamp) = (line.sequence, line.epoch, line.timestamp)
    }
}

/// The lines of a stream of actions, and the receipts that it got.
///
/// It follows a log, and checks that it has each of the stream's actions exactly once, in the order of
/// the lines, at the numbers of the receipts.
final class StreamExpectation {
    let name: String
    private let actions: [Digest]
    private let receipts: [UInt64]
    private var next = 0
    private var incarnation: UInt64?

    /// Expects the actions of a file, with the results that `conflux dispatch --json` printed for them.
    convenience init(_ name: String, actions path: String, results: [String]) throws {
        let receipts = try results.map { line in
            guard let sequence = try object(line)[key: "sequence"]?.number else {
                throw Failure("\(name): no receipt: \(line)")
            }
            return sequence
        }
        try self.init(name, actions: path, receipts: receipts)
    }

    /// Expects the actions of a file at the numbers of the receipts.
    init(_ name: String, actions path: String, receipts: [UInt64]) throws {
        self.name = name
        var actions: [Digest] = []
        try forEachLine(of: path) { line in
            actions.append(Digest(of: try JSONValue(json: line).canonicalBytes()))
        }
        self.actions = actions
        self.receipts = receipts
        guard receipts.count == actions.count else {
            throw Failure("\(name): \(receipts.count) results for \(actions.count) lines")
        }
        for (earlier, later) in zip(receipts, receipts.dropFirst()) where earlier >= later {
            throw Failure("\(name): receipt \(later) follows receipt \(earlier)")
        }
    }

    var lastSequence: UInt64 { receipts.last ?? 0 }

    /// - Returns: Whether the line of the log belongs to this stream.
    func take(
        _ action: JSONValue, at sequence: UInt64, incarnation: UInt64, counter: UInt64
    ) throws -> Bool {
        guard next < receipts.count, sequence == receipts[next] else {
            if incarnation == self.incarnation {
                throw Failure("\(name): entry \(sequence) has no receipt, or has two")
            }
            return false
        }
        let line = next + 1
        if self.incarnation == nil { self.incarnation = incarnation }
        guard incarnation == self.incarnation else {
            throw Failure("\(name): line \(line) is by node \(incarnation)")
        }
        guard counter == UInt64(line) else {
            throw Failure("\(name): line \(line) has the counter \(counter)")
        }
        guard Digest(of: try action.canonicalBytes()) == actions[next] else {
            throw Failure("\(name): entry \(sequence) is not line \(line)")
        }
        next += 1
        return true
    }

    func finish() throws {
        guard next == actions.count else {
            throw Failure("\(name): the log ends with line \(next) of \(actions.count)")
        }
    }
}

/// A document to which this process applies the log's actions, one by one.
struct ReferenceDocument {
    private(set) var document = Document()
    private(set) var applied = 0
    private(set) var refused = 0
    private let coder = ActionCoder<Document.Action>()

    mutating func take(_ action: JSONValue) throws {
        let action = try coder.decode(try action.canonicalBytes()[...], as: .json)
        let context = ActionContext()
        do {
            try document.check(action, context)
        } catch is DocumentRefusal {
            refused += 1
            return
        }
        document.apply(action, context)
        applied += 1
    }

    func state() throws -> String {
        String(decoding: try CanonicalCoder().encode(document), as: UTF8.self)
    }
}
