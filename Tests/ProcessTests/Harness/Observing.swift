import Conflux
import Foundation
import Spawning
import Testing

/// A store in one node, as `conflux observe --json` shows it.
struct Sighting: Sendable, Equatable {
    let node: String
    let sequence: UInt64
    /// The state's bytes as they were printed.
    let state: String

    init(_ line: String, of store: String) throws {
        // The state is cut out of the text, so that it is compared byte by byte and not as a value.
        let bytes = Array(line.utf8)
        let tail = Array(#","store":"\#(store.contains("/") ? store : "\(store)/shared")"}"#.utf8)
        guard let head = bytes.firstRange(of: Array(#","state":"#.utf8)),
            bytes.suffix(tail.count) == tail[...]
        else { throw Failure("no state: \(line.prefix(400))") }
        state = String(decoding: bytes[head.upperBound..<(bytes.count - tail.count)], as: UTF8.self)
        let rest = try object(
            String(decoding: bytes[..<head.lowerBound] + tail, as: UTF8.self))
        node = try #require(rest[key: "node"]?.string)
        sequence = try #require(rest[key: "sequence"]?.number)
    }
}

extension Site {
    /// Waits until nodes have a store in its state after an entry, or after a later one.
    ///
    /// - Returns: The store in each of the nodes, in the order of the names.
    func sightings(
        of store: String, at address: String, in nodes: [String], from sequence: UInt64,
        options: [String] = [], within limit: Duration = .seconds(60)
    ) async throws -> [Sighting] {
        try await untilHosted(store, at: address, by: nodes, within: limit)
        let child = try start(
            ["observe", store, "--follow", "--json", "--connect", address] + options)
        var current: [String: Sighting] = [:]
        _ = try await child.output.first(within: limit) { line in
            let sighting = try Sighting(line, of: store)
            if sighting.sequence >= sequence { current[sighting.node] = sighting }
            return nodes.allSatisfy { current[$0] != nil }
        }
        child.signal(SIGINT)
        let end = try await child.end()
        #expect(end == .exited(0), "\(child.title)")
        return try nodes.map { try #require(current[$0]) }
    }

    /// Waits until nodes have told the sequencer that they host a store. They do so after its restart, too.
    private func untilHosted(
        _ store: String, at address: String, by nodes: [String], within limit: Duration
    ) async throws {
        let name = store.contains("/") ? store : store + "/shared"
        let deadline = ContinuousClock.now + limit
        var hosts: [String] = []
        while ContinuousClock.now < deadline {
            let sessions = try await status(at: address)[key: "sessions"]?.array ?? []
            hosts = sessions.filter { session in
                session[key: "live"] == true
                    && session[key: "hosted"]?.array?.contains { $0.string == name } == true
            }.compactMap { $0[key: "name"]?.string }
            if nodes.allSatisfy(hosts.contains) { return }
        }
        throw Failure("\(name) is hosted by \(hosts), not by all of \(nodes)")
    }

    /// Dispatches one action, and expects a receipt.
    ///
    /// - Returns: The receipt's sequence number.
    func dispatch(
        _ action: String, to target: String, at address: String, _ options: String...
    ) async throws -> UInt64 {
        let child = try start(
            ["dispatch", target, action, "--json", "--connect", address] + options)
        let outcome = try await Tool.outcome(of: child)
        #expect(outcome.end == .exited(0), "\(outcome.title): \(outcome.message)")
        let line = try #require(outcome.output.first, "\(outcome.title): \(outcome.message)")
        return try #require(try object(line)[key: "sequence"]?.number)
    }

    /// The output of `conflux status --json`.
    func status(at address: String) async throws -> JSONValue {
        let outcome = try await run("status", "--json", "--connect", address)
        return try object(try #require(outcome.output.first, "\(outcome.message)"))
    }

    /// The names and incarnations of the live sessions that have a name.
    func liveNodes(at address: String) async throws -> [String: UInt64] {
        var nodes: [String: UInt64] = [:]
        for session in try await status(at: address)[key: "sessions"]?.array ?? []
        where session[key: "live"] == true {
            if let name = session[key: "name"]?.string {
                nodes[name] = session[key: "incarnation"]?.number
            }
        }
        return nodes
    }
}
