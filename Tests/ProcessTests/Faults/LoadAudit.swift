import Conflux
import ConfluxBuiltins
import ConfluxHashing
import ConfluxVocabulary
import Foundation
import Spawning

/// Compares the outcomes that a load printed with the log.
final class LoadAudit {
    /// The printed outcome of a line.
    private enum Outcome {
        case receipt(UInt64)
        case invalid
    }

    let name: String
    /// For each line: the digest of its action, or nil if it is not an action.
    private let lines: [Digest?]
    private let outcomes: [Outcome]
    private let isWhole: Bool
    /// For each counter: the line that has it.
    private let placeOfCounter: [Int]
    private var sequences: [UInt64] = []

    private(set) var incarnation: UInt64?

    // `isWhole` says that the load read all its input and ended by itself. Another load was killed.
    init(_ load: Load, isWhole: Bool) async throws {
        name = load.name
        self.isWhole = isWhole
        let coder = ActionCoder<Document.Action>()
        var lines: [Digest?] = []
        try forEachLine(of: load.path) { line in
            do {
                _ = try coder.decode(Array(line.utf8)[...], as: .json)
                lines.append(Digest(of: try JSONValue(json: line).canonicalBytes()))
            } catch {
                lines.append(nil)
            }
        }
        self.lines = lines
        placeOfCounter = lines.indices.filter { lines[$0] != nil }
        var printed = try await load.child.output.all()
        // A process that is killed while it writes leaves an incomplete line.
        if !isWhole, let last = printed.last, !last.hasSuffix("}") { printed.removeLast() }
        outcomes = try printed.enumerated().map { index, text in
            let line = try object(text)
            if let sequence = line[key: "sequence"]?.number { return .receipt(sequence) }
            guard line[key: "error"]?[key: "code"] == "invalidAction",
                line[key: "line"]?.number == UInt64(index + 1)
            else { throw Failure("\(load.name): no receipt for line \(index + 1): \(text)") }
            return .invalid
        }
        guard isWhole ? outcomes.count == lines.count : outcomes.count <= lines.count else {
            throw Failure("\(name): \(outcomes.count) outcomes for \(lines.count) lines")
        }
    }

    /// How many lines the load was given. `invalidCount` says how many of them are not actions.
    var lineCount: Int { lines.count }
    var invalidCount: Int { lines.count - placeOfCounter.count }
    var receiptCount: Int { outcomes.count { if case .receipt = $0 { true } else { false } } }

    /// Takes the log's next entry that is an action of a node.
    ///
    /// - Returns: Whether the action is one of this load's.
    func take(
        _ action: JSONValue, digest: Digest, at sequence: UInt64, incarnation: UInt64,
        counter: UInt64
    ) throws -> Bool {
        if self.incarnation == nil {
            guard action.description == Load.mark(name) else { return false }
            self.incarnation = incarnation
        }
        guard incarnation == self.incarnation else {
            if action.description == Load.mark(name) {
                throw Failure("\(name): entry \(sequence) is its first line once more")
            }
            return false
        }
        guard counter == UInt64(sequences.count) + 1 else {
            throw Failure(
                "\(name): entry \(sequence) has counter \(counter), after \(sequences.count)")
        }
        guard sequences.count < placeOfCounter.count else {
            throw Failure("\(name): entry \(sequence) is none of its \(lines.count) lines")
        }
        let place = placeOfCounter[sequences.count]
        guard lines[place] == digest else {
            throw Failure("\(name): entry \(sequence) is not line \(place + 1)")
        }
        sequences.append(sequence)
        return true
    }

    /// Compares the outcomes with the log, after all entries were taken.
    func finish() throws {
        if isWhole, sequences.count != placeOfCounter.count {
            throw Failure(
                "\(name): \(sequences.count) of \(placeOfCounter.count) actions are in the log")
        }
        var counter = 0
        for (place, outcome) in outcomes.enumerated() {
            switch (outcome, lines[place]) {
            case (.invalid, nil): break
            case (.receipt(let sequence), .some):
                guard counter < sequences.count, sequences[counter] == sequence else {
                    let found = counter < sequences.count ? "\(sequences[counter])" : "nowhere"
                    throw Failure(
                        "\(name): line \(place + 1) has a receipt for \(sequence); it is \(found)")
                }
                counter += 1
            case (.invalid, .some), (.receipt, nil):
                throw Failure("\(name): a wrong outcome of line \(place + 1)")
            }
        }
    }
}

extension Site {
    /// Replays the whole log, and compares it with the loads, and then the document of each node with the
    /// replayed document. Entries that don't concern a document are given to `take`.
    ///
    /// - Returns: How many actions and how many terms the log has.
    func audit(
        _ audits: [LoadAudit], at address: String, in nodes: [String],
        within limit: Duration = .seconds(60), other take: (LogLine) throws -> Void = { _ in }
    ) async throws -> (actions: Int, terms: Int) {
        let path = path("log-\(UUID().uuidString).ndjson")
        let child = try start(["log", "--json", "--connect", address], output: .file(path))
        guard try await child.end(within: limit) == .exited(0) else { throw Failure(child.report) }

        var order = LogOrder()
        var reference = ReferenceDocument()
        var last: UInt64 = 0
        var epochs: Set<UInt64> = []
        try forEachLine(of: path) { text in
            let line = try LogLine(text)
            try order.take(line)
            epochs.insert(line.epoch)
            guard
                case .action(let action, "document/*", let incarnation, let counter) = line.content
            else { return try take(line) }
            let digest = Digest(of: try action.canonicalBytes())
            let owners = try audits.filter {
                try $0.take(
                    action, digest: digest, at: line.sequence, incarnation: incarnation,
                    counter: counter)
            }
            guard owners.count == 1 else {
                throw Failure("entry \(line.sequence) belongs to \(owners.map(\.name))")
            }
            try reference.take(action)
            last = line.sequence
        }
        for audit in audits { try audit.finish() }

        let state = Array(try reference.state().utf8)
        let sightings = try await sightings(
            of: "document", at: address, in: nodes, from: last, within: limit)
        for sighting in sightings {
            guard sighting.sequence == last, Array(sighting.state.utf8) == state else {
                throw Failure(
                    "\(sighting.node) differs at \(sighting.sequence) from the log at \(last)")
            }
        }
        return (reference.applied + reference.refused, epochs.count)
    }
}
