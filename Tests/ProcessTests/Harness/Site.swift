import Conflux
import Foundation
import Spawning
import Synchronization
import Testing

/// The processes and files of one test. They are ended and removed in any case.
final class Site: Sendable {
    /// The words before a program, if a test doesn't give any: for instance `ip netns exec NAME`, on a machine with
    /// its own network.
    @TaskLocal static var prefix: [String] = []

    let folder: String
    private let children = Mutex<[Child]>([])

    init() throws {
        let url = FileManager.default.temporaryDirectory
            .appendingPathComponent("conflux-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        folder = url.path
    }

    func path(_ name: String) -> String { "\(folder)/\(name)" }

    func write(_ text: String, to name: String) throws -> String {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path(name)))
        return path(name)
    }

    // MARK: Processes

    /// Starts the tool, or another program that was built with the tests. The words of `prefix` come before it: they
    /// are a program that becomes the started one, and its arguments, such as `ip netns exec NAME`.
    func start(
        _ arguments: [String], program: String? = nil, behind prefix: [String] = Site.prefix,
        variables: [String: String] = [:], input: Child.Input = .nothing,
        output: Child.Output = .lines
    ) throws -> Child {
        let line = prefix + [program.map(Tool.built) ?? Tool.path] + arguments
        let child = try Tool.start(
            Array(line.dropFirst()), program: line[0], variables: variables, input: input,
            output: output)
        children.withLock { $0.append(child) }
        return child
    }

    func run(
        _ arguments: String..., input: Child.Input = .nothing, within limit: Duration = .seconds(60)
    ) async throws -> Tool.Outcome {
        try await Tool.outcome(of: try start(arguments, input: input), within: limit)
    }

    /// Starts a sequencer and waits until it is ready. Its log is in a folder of this name, in memory, or at
    /// an address of etcd. It has free ports of a host, or the ports of an earlier sequencer.
    func sequencer(
        data: String? = nil, log address: String? = nil, at place: RunningSequencer? = nil,
        host: String = "127.0.0.1",
        _ options: String...
    ) async throws -> RunningSequencer {
        let log =
            address.map { ["--log", $0] } ?? data.map { ["--data", path($0)] } ?? ["--memory"]
        let bind = place?.address ?? "tcp://\(host):0"
        let feed = place.map { ["--feed", $0.feed] } ?? []
        let child = try start(["sequencer", "--json", "--bind", bind] + feed + log + options)
        let ready = try await readyLine(of: child)
        let address = try #require(ready[key: "address"]?.string)
        let feedAddress = try #require(ready[key: "feed"]?.string)
        return RunningSequencer(child: child, address: address, feed: feedAddress, ready: ready)
    }

    /// Starts a worker and waits until its stores are current.
    func worker(
        _ name: String, of sequencer: RunningSequencer, stores: [String] = ["counter", "document"],
        at address: String? = nil, options: [String] = []
    ) async throws -> RunningWorker {
        let child = try start(
            ["worker", "--json", "--connect", address ?? sequencer.address, "--name", name]
                + options + stores.flatMap { ["--store", $0] })
        let ready = try await readyLine(of: child)
        return RunningWorker(child: child, name: name, ready: ready)
    }

    private func readyLine(of child: Child) async throws -> JSONValue {
        var ready: JSONValue?
        do {
            _ = try await child.output.first { line in
                let event = try object(line)
                if event[key: "event"] == "ready" { ready = event }
                return ready != nil
            }
        } catch {
            throw Failure("\(error)\n\(child.report)")
        }
        return try #require(ready)
    }

    // MARK: The end

    /// Kills all processes and removes the files.
    func close() async {
        await end()
        do {
            try FileManager.default.removeItem(atPath: folder)
        } catch {
            Issue.record("\(folder) is left behind: \(error)")
        }
    }

    /// Kills all processes.
    func end() async {
        let children = children.withLock { $0 }
        for child in children { child.signal(SIGKILL) }
        for child in children {
            do {
                _ = try await child.end()
            } catch {
                Issue.record("a process is left behind: \(error)")
            }
        }
    }

    /// The last output of all processes.
    var report: String { children.withLock { $0 }.map(\.report).joined(separator: "\n") }
}

/// A sequencer that was ready.
struct RunningSequencer: Sendable {
    let child: Child
    let address: String
    let feed: String
    let ready: JSONValue
}

/// A worker that was ready.
struct RunningWorker: Sendable {
    let child: Child
    let name: String
    let ready: JSONValue

    var incarnation: UInt64? { ready[key: "incarnation"]?.number }
}

/// Runs a test's body on a site, and removes the site in any case.
func withSite(_ body: (Site) async throws -> Void) async throws {
    let site = try Site()
    do {
        try await body(site)
    } catch {
        let report = site.report
        await site.close()
        throw Failure("\(error)\n\(report)")
    }
    await site.close()
}
