import Foundation
import Spawning
import Testing

extension Site {
    /// Expects that each action of some streams on the shared document is in the log exactly once and in
    /// order, and that nodes have the document that results from the log.
    ///
    /// - Parameters:
    ///   - streams: The streams.
    ///   - address: The sequencer's address.
    ///   - nodes: The names of the nodes.
    ///   - damage: The entries of the log that can't be read. No stream has any of them.
    ///   - limit: How long each of the steps may take.
    /// - Returns: The document that results from the log, computed in this process.
    /// - Throws: ``Failure`` if the log is not what the streams were promised.
    @discardableResult
    func expectOneHistory(
        of streams: [StreamExpectation], at address: String, in nodes: [String],
        damage: ClosedRange<UInt64>? = nil, within limit: Duration = .seconds(60)
    ) async throws -> ReferenceDocument {
        let last = streams.map(\.lastSequence).max() ?? 0
        let sightings = try await sightings(
            of: "document", at: address, in: nodes, from: last, within: limit)
        let reference = try await replay(
            streams, at: address, through: last, without: damage, within: limit)
        let state = Array(try reference.state().utf8)
        for sighting in sightings {
            #expect(sighting.sequence == last)
            // Not as operands of `#expect`: it would print megabytes if they differ.
            let isSame = Array(sighting.state.utf8) == state
            #expect(isSame, "\(sighting.node) differs from what follows from the log")
        }
        return reference
    }

    /// Replays the whole log, and compares it with the streams and with a document of this process.
    private func replay(
        _ streams: [StreamExpectation], at address: String, through last: UInt64,
        without damage: ClosedRange<UInt64>?, within limit: Duration
    ) async throws -> ReferenceDocument {
        let path = path("log-\(UUID().uuidString).ndjson")
        let child = try start(["log", "--json", "--connect", address], output: .file(path))
        let end = try await child.end(within: limit)
        #expect(end == .exited(damage == nil ? 0 : 74), "\(child.report)")
        if let damage {
            let message = try await child.errors.all().joined(separator: "\n")
            let place = "entries \(damage.lowerBound) to \(damage.upperBound) "
            #expect(message.contains(place), "\(message)")
        }

        var order = LogOrder(without: damage)
        var reference = ReferenceDocument()
        try forEachLine(of: path) { text in
            let line = try LogLine(text)
            try order.take(line)
            guard
                case .action(let action, "document/*", let incarnation, let counter) = line.content
            else { return }
            let owners = try streams.filter {
                try $0.take(action, at: line.sequence, incarnation: incarnation, counter: counter)
            }
            guard owners.count == 1 else {
                throw Failure("entry \(line.sequence) belongs to \(owners.map(\.name))")
            }
            try reference.take(action)
        }
        for stream in streams { try stream.finish() }
        #expect(order.last >= last)
        return reference
    }
}
