import Conflux
import Foundation
import Testing

/// A folder that takes the place of a machine: it has /etc/conflux, /var/lib/conflux, /backup, and a home.
struct Machine: Sendable {
    static let sequencer = "10.0.0.5"
    static let alpha = "10.0.0.6"
    static let beta = "10.0.0.7"
    /// The machine to which the sequencer moves.
    static let other = "10.0.0.8"

    let root: String

    /// A machine in a folder, which is made if it doesn't exist.
    init(_ root: String) throws {
        self.root = root
        let files = FileManager.default
        guard !files.fileExists(atPath: root) else { return }
        for folder in ["etc/conflux", "var/lib", "backup", "home", "bin"] {
            try files.createDirectory(
                atPath: path("/\(folder)"), withIntermediateDirectories: true)
        }
        try files.createSymbolicLink(
            atPath: path("/bin/conflux"), withDestinationPath: Tool.path)
        try files.createSymbolicLink(
            atPath: path("/bin/conflux-backup"),
            withDestinationPath: Deployment.path("deploy/backup/conflux-backup"))
        // Everything belongs to the user who runs the test, so `sudo` does nothing.
        try Data("#!/bin/sh\nexec \"$@\"\n".utf8).write(to: URL(filePath: path("/bin/sudo")))
        try files.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path("/bin/sudo"))
    }

    /// The real path for a path on the machine. A relative path is in the home.
    func path(_ path: String) -> String {
        path.hasPrefix("/") ? root + path : "\(root)/home/\(path)"
    }

    /// A command, with its paths replaced by the real ones.
    func local(_ command: String) -> String {
        ["/etc/conflux", "/var/lib/conflux", "/backup/"].reduce(command) {
            $0.replacing($1, with: path($1))
        }
    }

    /// Runs a command in the home. The prefix is a program that becomes the shell, with its arguments.
    func shell(_ command: String, behind prefix: [String] = []) async throws -> Tool.Outcome {
        let line = prefix + ["/bin/sh", "-c", "cd\n\(command)"]
        let child = try Tool.start(
            Array(line.dropFirst()), program: line[0],
            variables: [
                "HOME": path("/home"), "PATH": "\(path("/bin")):/usr/bin:/bin:/usr/sbin:/sbin",
            ], input: .nothing)
        return try await Tool.outcome(of: child)
    }

    // MARK: Units

    /// What a unit would run: the program's arguments and variables.
    func service(
        _ unit: String, instance: String = ""
    ) throws -> (arguments: [String], variables: [String: String]) {
        var arguments: [String] = []
        var variables: [String: String] = [:]
        var credentials: [String: String] = [:]
        let lines = try Deployment.text("deploy/systemd/\(unit)").split(separator: "\n")
        let settings = lines.filter { !$0.hasPrefix("#") }.map {
            $0.replacing("%i", with: instance)
        }
        for setting in settings {
            if let match = setting.wholeMatch(of: /LoadCredential=(.+):(.+)/) {
                credentials["%d/\(match.1)"] = path(String(match.2))
            } else if let match = setting.wholeMatch(of: /EnvironmentFile=-(.+)/) {
                variables.merge(try assignments(in: path(String(match.1)))) { $1 }
            }
        }
        for setting in settings {
            guard let match = setting.wholeMatch(of: /ExecStart=\/usr\/bin\/conflux (.+)/) else {
                continue
            }
            let options = (variables["OPTIONS"] ?? "").split(separator: " ").map(String.init)
            arguments = match.1.split(separator: " ").flatMap { word in
                let word = String(word)
                if word == "$OPTIONS" { return options }
                if let file = credentials[word] { return [file] }
                return [local(word.replacing("%S", with: "/var/lib"))]
            }
        }
        try #require(!arguments.isEmpty, "\(unit) starts nothing")
        try FileManager.default.createDirectory(
            atPath: path("/var/lib/conflux-worker/\(instance)"), withIntermediateDirectories: true)
        return (arguments, variables)
    }

    /// What the unit of a backup would run.
    func backup() throws -> String {
        let unit = try Deployment.text("deploy/systemd/conflux-backup.service")
        var variables = try assignments(in: path("/etc/conflux/backup.env"))
        for match in unit.matches(of: /([A-Z_]+)=(\S+)/) where variables[String(match.1)] == nil {
            variables[String(match.1)] = String(match.2)
        }
        var command = String(try #require(unit.firstMatch(of: /ExecStart=(.+)/)).1)
            .replacing("/usr/lib/conflux/", with: "").replacing("%S", with: "/var/lib")
        for (name, value) in variables { command = command.replacing("${\(name)}", with: value) }
        return command
    }

    /// The variables of a file, with the paths that they have on a real machine. If one is set by several lines, the last
    /// line counts.
    private func assignments(in file: String) throws -> [String: String] {
        guard FileManager.default.fileExists(atPath: file) else { return [:] }
        let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
        let pairs = lines.filter { !$0.hasPrefix("#") }.map { line in
            let parts = line.split(separator: "=", maxSplits: 1)
            let value = parts.count > 1 ? String(parts[1]) : ""
            return (String(parts[0]), value.replacing(root, with: ""))
        }
        return Dictionary(pairs) { $1 }
    }
}
