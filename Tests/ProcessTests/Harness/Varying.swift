import Conflux
import Foundation
import Spawning
import Testing

/// Workers whose code depends on their names: see Tests/VaryingWorker.
extension Site {
    /// Starts a worker of one store, and waits until it is current.
    func varyingWorker(
        _ name: String, hosting store: String, of sequencer: RunningSequencer
    ) async throws -> Child {
        let child = try startVaryingWorker(name, hosting: store, of: sequencer)
        _ = try await event("ready", of: child)
        return child
    }

    func startVaryingWorker(
        _ name: String, hosting store: String, of sequencer: RunningSequencer,
        _ options: [String] = []
    ) throws -> Child {
        try start(
            ["--json", "--connect", sequencer.address, "--name", name, "--store", store] + options,
            program: "VaryingWorker")
    }

    /// Waits for the first matching event of a name that a sequencer or a worker prints.
    func event(
        _ name: String, of child: Child, where isWanted: (JSONValue) -> Bool = { _ in true }
    ) async throws -> JSONValue {
        var found: JSONValue?
        do {
            _ = try await child.output.first { line in
                let event = try object(line)
                if event[key: "event"] == .string(name), isWanted(event) { found = event }
                return found != nil
            }
        } catch {
            throw Failure("no \(name): \(error)\n\(child.report)")
        }
        return try #require(found)
    }

    /// Dispatches a stream of actions, and expects a receipt for each.
    ///
    /// - Returns: The sequence number of the last one.
    @discardableResult
    func dispatch(
        lines: [String], to target: String, at address: String, _ options: String...
    ) async throws -> UInt64 {
        let path = try write(
            lines.joined(separator: "\n") + "\n", to: "lines-\(UUID().uuidString).ndjson")
        let child = try start(
            ["dispatch", target, "--file", path, "--json", "--connect", address] + options)
        let outcome = try await Tool.outcome(of: child, within: .seconds(120))
        #expect(outcome.end == .exited(0), "\(outcome.title): \(outcome.message)")
        #expect(outcome.output.count == lines.count)
        let line = try #require(outcome.output.last, "\(outcome.title): \(outcome.message)")
        return try #require(try object(line)[key: "sequence"]?.number)
    }

    /// The row of a store in `conflux status --json`.
    func status(of store: String, at address: String) async throws -> JSONValue {
        let stores = try await status(at: address)[key: "stores"]?.array ?? []
        return try #require(stores.first { $0[key: "store"] == .string(store) })
    }

    /// How many bytes the files of a folder occupy on disk.
    func diskBytes(of folder: String) throws -> Int {
        let url = URL(fileURLWithPath: path(folder))
        let files = try FileManager.default.contentsOfDirectory(
            at: url, includingPropertiesForKeys: nil)
        return files.reduce(0) { sum, file in
            var status = stat()
            // A file that was removed meanwhile occupies nothing.
            return stat(file.path, &status) == 0 ? sum + Int(status.st_blocks) * 512 : sum
        }
    }
}
