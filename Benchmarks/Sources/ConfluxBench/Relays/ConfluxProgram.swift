import Foundation

/// A process of `conflux`, the program that `script/bench` builds for workloads that need it.
final class ConfluxProgram {
    /// What the line that says ready has under a key.
    private let ready: [String: String]
    private let process = Process()
    private let command: String

    /// Starts a command, and waits until it is ready.
    convenience init(_ arguments: String...) throws { try self.init(arguments) }

    /// Starts a command, and waits until it is ready.
    convenience init(_ arguments: [String]) throws {
        guard let program = ProcessInfo.processInfo.environment["CONFLUX_PROGRAM"] else {
            throw BenchError("CONFLUX_PROGRAM names no program: use script/bench")
        }
        try self.init(program, "conflux \(arguments[0])", arguments)
    }

    /// Starts this program as one of its own kind, and waits until it is ready.
    ///
    /// - Parameters:
    ///   - variable: The variable that says so.
    ///   - arguments: Its command line.
    /// - Throws: Why it does not start.
    convenience init(as variable: String, _ arguments: [String]) throws {
        guard let program = Bundle.main.executablePath else {
            throw BenchError("this program has no path")
        }
        try self.init(program, "the gateway", arguments, variable: variable)
    }

    private init(
        _ program: String, _ command: String, _ arguments: [String], variable: String? = nil
    ) throws {
        self.command = command
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments + ["--json"]
        if let variable {
            process.environment = ProcessInfo.processInfo.environment.merging([variable: "1"]) {
                $1
            }
        }
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        var line = Data()
        while !line.contains(UInt8(ascii: "\n")) {
            let bytes = output.fileHandleForReading.availableData
            guard !bytes.isEmpty else { throw BenchError("\(command) ended") }
            line += bytes
        }
        let object = try JSONSerialization.jsonObject(with: line.prefix { $0 != 0x0A })
        ready = (object as? [String: Any])?.compactMapValues { $0 as? String } ?? [:]
    }

    /// What its line that says ready has under a key.
    func address(_ key: String) throws -> String {
        guard let address = ready[key] else { throw BenchError("\(command) has no \(key)") }
        return address
    }

    func end() {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }
}
