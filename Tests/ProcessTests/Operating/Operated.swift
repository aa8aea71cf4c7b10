import Conflux
import Foundation
import Spawning
import Testing

/// Three machines, set up as the runbook says. A test runs a section's commands on them.
///
/// Two commands are imitated: `systemctl` starts, stops and signals the processes that the units
/// describe, and `scp` copies from folder to folder. A shell runs all other commands, with the
/// addresses and folders of the test.
final class Operated {
    let site: Site
    private(set) var sequencer: RunningSequencer?
    private(set) var workers: [String: Child] = [:]
    /// Programs that run instead of `conflux worker`, by the names of the workers.
    var programs: [String: String] = [:]
    private var section = Runbook.Section(anchor: "")
    /// The commands that were run, by section.
    private var done: [String: Set<String>] = [:]
    /// The exports that each shell needs first.
    private var exports: [String] = []
    /// Texts in the runbook, and what replaces them in the test.
    private var places = [
        ("tcp://*:7400", "tcp://127.0.0.1:0"), ("127.0.0.1:7480", "127.0.0.1:0"),
        ("127.0.0.1:7481", "127.0.0.1:0"),
    ]
    /// The address at which the sequencer of a machine was.
    private var addresses: [String: RunningSequencer] = [:]

    /// The words before a command that run it on a machine with its own network.
    private let prefix: ((String) throws -> [String])?

    init(_ site: Site, prefix: ((String) throws -> [String])? = nil) {
        (self.site, self.prefix) = (site, prefix)
        // The machines have the addresses of the runbook, so nothing is replaced.
        if prefix != nil { places = [] }
    }

    func machine(_ host: String) throws -> Machine { try Machine(site.path(host)) }

    // MARK: Sections

    var anchor: String { section.anchor }

    /// Starts a section. Commands that are run from now on belong to it.
    func begin(_ anchor: String) throws {
        section = try Runbook.section(anchor)
    }

    /// Expects that all commands of the section were run, except for the exceptions.
    func finish() {
        for command in section.commands where done[section.anchor]?.contains(command) != true {
            #expect(
                Runbook.isException(command),
                "\(Runbook.file)#\(section.anchor): no test runs: \(command)")
        }
    }

    /// Runs a command of the section, and expects an exit code; with nil, any code is fine. Texts in the
    /// command are replaced by the values that they have in the test.
    @discardableResult
    func run(
        _ command: String, on host: String = Machine.sequencer, with values: [String: String] = [:],
        code: Int32? = 0
    ) async throws -> Tool.Outcome {
        #expect(
            section.commands.contains(command),
            "\(Runbook.file)#\(section.anchor) does not have: \(command)")
        done[section.anchor, default: []].insert(command)
        var line = command
        for (name, value) in values { line = line.replacing(name, with: value) }
        let outcome: Tool.Outcome
        if line.hasSuffix("systemctl start conflux-backup") {
            outcome = try await shell(try machine(host).backup(), on: host)
        } else if let match = line.firstMatch(
            of: /systemctl (.+) conflux-(sequencer|worker@(.+))/)
        {
            outcome = try await control(
                String(match.1), String(match.3 ?? ""), on: host, title: line)
        } else if line.hasPrefix("scp ") || line.hasPrefix("sudo scp ") {
            outcome = try await copy(line, from: host)
        } else {
            outcome = try await shell(line, on: host)
            if line.hasPrefix("export ") { exports.append(line) }
        }
        if let code {
            #expect(
                outcome.end == .exited(code), "\(line): \(outcome.end), \(outcome.message)")
        }
        return outcome
    }

    /// Runs a command until its output matches, as an operator would.
    @discardableResult
    func run(
        _ command: String, until isWanted: (String) -> Bool
    ) async throws -> String {
        let deadline = ContinuousClock.now + .seconds(60)
        var text = ""
        repeat {
            text = try await run(command, code: nil).output.joined(separator: "\n")
            if isWanted(text) { return text }
        } while ContinuousClock.now < deadline
        throw Failure("\(command) says for a minute:\n\(text)")
    }

    private func shell(_ line: String, on host: String) async throws -> Tool.Outcome {
        var script = (exports + [line]).joined(separator: "\n")
        for (address, sequencer) in addresses where prefix == nil {
            script = script.replacing("tcp://\(address):7400", with: sequencer.address)
        }
        for (name, value) in places { script = script.replacing(name, with: value) }
        let machine = try machine(host)
        return try await machine.shell(machine.local(script), behind: try prefix?(host) ?? [])
    }

    /// Copies files between machines.
    private func copy(_ line: String, from host: String) async throws -> Tool.Outcome {
        let words = line.split(separator: " ").map(String.init).filter {
            !["sudo", "scp", "-r"].contains($0)
        }
        let paths = try words.map { word in
            let parts = word.split(
                separator: ":", maxSplits: 1, omittingEmptySubsequences: false
            ).map(String.init)
            return parts.count == 2
                ? try machine(parts[0]).path(parts[1]) : try machine(host).path(word)
        }
        return try await machine(host).shell("cp -R " + paths.joined(separator: " "))
    }

    // MARK: Processes

    /// Does what `systemctl` would do to a worker, or to the sequencer if the instance is empty.
    private func control(
        _ verb: String, _ instance: String, on host: String, title: String
    ) async throws -> Tool.Outcome {
        let child = instance.isEmpty ? sequencer?.child : workers[instance]
        if verb == "reload" {
            let start = try #require(child).output.count
            child?.signal(SIGHUP)
            _ = try await child?.output.first(from: start) { $0.contains("\"authorized\"") }
        }
        if verb.hasPrefix("stop") || verb.hasPrefix("disable") || verb == "restart" {
            child?.signal(SIGTERM)
            // A process that is stopped by SIGSTOP must continue to end.
            child?.signal(SIGCONT)
            _ = try await child?.end()
        }
        if verb.hasPrefix("start") || verb.hasPrefix("enable") || verb == "restart" {
            if instance.isEmpty {
                try await startSequencer(on: host)
            } else {
                _ = try await site.event("ready", of: try startWorker(instance, on: host))
            }
        }
        return Tool.Outcome(title: title, end: .exited(0), output: [], errors: [])
    }

    private func startSequencer(on host: String) async throws {
        var (arguments, variables) = try machine(host).service("conflux-sequencer.service")
        if prefix == nil, let place = addresses[host] {
            if let bind = arguments.firstIndex(of: "--bind") {
                arguments.removeSubrange(bind...(bind + 1))
            }
            arguments += ["--bind", place.address, "--feed", place.feed]
        }
        let child = try site.start(
            arguments + ["--json"], behind: try prefix?(host) ?? [], variables: variables)
        let ready = try await site.event("ready", of: child)
        let running = RunningSequencer(
            child: child, address: try #require(ready[key: "address"]?.string),
            feed: try #require(ready[key: "feed"]?.string), ready: ready)
        (sequencer, addresses[host]) = (running, running)
        if prefix == nil, let http = ready[key: "http"]?.string { set("127.0.0.1:7480", http) }
    }

    /// Starts a worker. systemd would also do this after it has crashed.
    @discardableResult
    func startWorker(_ name: String, on host: String) throws -> Child {
        let (arguments, variables) = try machine(host).service(
            "conflux-worker@.service", instance: name)
        let program = programs[name]
        let child = try site.start(
            (program == nil ? arguments : Array(arguments.dropFirst())) + ["--json"],
            program: program, behind: try prefix?(host) ?? [], variables: variables)
        workers[name] = child
        return child
    }

    /// Waits until a worker prints the address of its metrics.
    func findMetrics(of worker: String) async throws {
        let ready = try await site.event("ready", of: try #require(workers[worker]))
        set("127.0.0.1:7481", try #require(ready[key: "http"]?.string))
    }

    private func set(_ name: String, _ value: String) {
        places.removeAll { $0.0 == name }
        places.append((name, value))
    }
}

/// Runs a test's body on machines that are set up as the runbook says. Expects that it runs all commands
/// of a section.
func withOperated(
    _ anchor: String,
    workers: [(name: String, program: String?)] = [("alpha", nil), ("beta", nil)],
    prefix: ((String) throws -> [String])? = nil, _ body: (Operated) async throws -> Void
) async throws {
    try await withSite { site in
        let cluster = Operated(site, prefix: prefix)
        try await cluster.setUp(workers)
        try cluster.begin(anchor)
        try await body(cluster)
        cluster.finish()
    }
}

extension Operated {
    /// Runs the commands of the section about the first set-up.
    func setUp(_ workers: [(name: String, program: String?)]) async throws {
        try begin("first-set-up")
        try await run("sudo conflux keygen /etc/conflux/sequencer")
        try await run(
            "conflux keygen ~/ops | sed 's/^/ops /; s/$/ administer dispatch observe/' "
                + "| sudo tee -a /etc/conflux/authorized")
        try await run(
            "echo 'OPTIONS=--bind tcp://*:7400' | sudo tee -a /etc/conflux/sequencer.env")
        try await run(
            "echo 'CONFLUX_HTTP=127.0.0.1:7480' | sudo tee -a /etc/conflux/sequencer.env")
        try await run("sudo systemctl enable --now conflux-sequencer")
        for (worker, host) in zip(workers, [Machine.alpha, Machine.beta]) {
            programs[worker.name] = worker.program
            let named = ["alpha": worker.name]
            try await run("scp 10.0.0.5:/etc/conflux/sequencer.public .", on: host)
            try await run("sudo cp sequencer.public /etc/conflux/sequencer.public", on: host)
            try await run(
                "sudo conflux keygen /etc/conflux/alpha "
                    + "| sed 's/^/alpha /; s/$/ host dispatch/' > alpha.line",
                on: host, with: named)
            try await run("scp alpha.line 10.0.0.5:", on: host, with: named)
            try await run(
                "echo 'CONFLUX_CONNECT=tcp://10.0.0.5:7400' "
                    + "| sudo tee -a /etc/conflux/worker.env", on: host)
            try await run(
                "echo 'CONFLUX_HTTP=127.0.0.1:7481' | sudo tee -a /etc/conflux/worker.env",
                on: host)
            try await run("sudo tee -a /etc/conflux/authorized < alpha.line", with: named)
            try await run("sudo systemctl reload conflux-sequencer")
            try await run(
                "sudo systemctl enable --now conflux-worker@alpha", on: host, with: named)
        }
        try await run("export CONFLUX_CONNECT=tcp://10.0.0.5:7400")
        try await run("export CONFLUX_CURVE_SECRET=~/ops.secret")
        try await run("export CONFLUX_SERVER_KEY=/etc/conflux/sequencer.public")
    }
}

extension Operated {
    /// Dispatches an action as the operator, with a command that is not in the runbook.
    ///
    /// - Returns: The number of its entry.
    @discardableResult
    func dispatch(_ target: String, _ action: String) async throws -> UInt64 {
        let lines = try await dispatch(target, lines: [action])
        return try #require(try object(lines.last ?? "")[key: "sequence"]?.number)
    }

    /// Adds words to a wordlist: more of them than the log has between two digest points.
    func addWords(from first: Int) async throws {
        let padding = String(repeating: "x", count: 8 << 10)
        try await dispatch(
            "wordlist",
            lines: (first..<first + 80).map {
                #"{"add":{"padding":"\#(padding)","word":"w\#($0)"}}"#
            })
    }

    /// Dispatches large actions, for which a small disk does not have enough room.
    func startLoad() throws -> Child {
        let value = String(repeating: "x", count: 900_000)
        let lines = (1...50).map { _ in #"{"set":{"at":"/a","value":"\#(value)"}}"# }
        return try startDispatch("document", lines: lines)
    }

    @discardableResult
    private func dispatch(_ target: String, lines: [String]) async throws -> [String] {
        let outcome = try await Tool.outcome(of: try startDispatch(target, lines: lines))
        #expect(outcome.end == .exited(0), "\(outcome.message)")
        return outcome.output
    }

    private func startDispatch(_ target: String, lines: [String]) throws -> Child {
        let file = try site.write(
            lines.joined(separator: "\n") + "\n", to: "lines-\(UUID().uuidString)")
        let machine = try machine(Machine.sequencer)
        return try site.start([
            "dispatch", target, "--file", file, "--json", "--connect",
            try #require(sequencer).address, "--curve-secret", machine.path("ops.secret"),
            "--server-key", machine.path("/etc/conflux/sequencer.public"),
        ])
    }

    /// Moves the log to another disk, and leaves a link in its place, as under systemd.
    func moveLog(to folder: String) async throws {
        _ = try await control("stop", "", on: Machine.sequencer, title: "stop")
        let machine = try machine(Machine.sequencer)
        let log = machine.path("/var/lib/conflux")
        let outcome = try await machine.shell("mv \(log) \(folder) && ln -s \(folder) \(log)")
        #expect(outcome.end == .exited(0), "\(outcome.message)")
        _ = try await control("start", "", on: Machine.sequencer, title: "start")
    }
}
