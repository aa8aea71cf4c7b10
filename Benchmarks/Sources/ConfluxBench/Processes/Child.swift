import Foundation

/// A process that was started, and the lines it writes. One thread uses it.
final class Child {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var unread: [UInt8] = []
    private let name: String

    /// How long a process may take for whatever it is waited for.
    static let patience = Duration.seconds(600)

    /// Starts this program in a role.
    init(_ role: Role) throws {
        name = "\(role)"
        guard let program = Bundle.main.executablePath else {
            throw BenchError("this program does not know where it is")
        }
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = [
            Role.option, String(decoding: try JSONEncoder().encode(role), as: UTF8.self),
        ]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
    }

    /// Tells the process to begin.
    func go() throws { try tell("go") }

    /// The processor time that the process has used.
    func usedProcessorNanoseconds() throws -> UInt64 {
        try tell("usage")
        guard case .usage(let nanoseconds) = try next() else {
            throw BenchError("\(name) told something else than its usage")
        }
        return nanoseconds
    }

    /// The most memory that the process had so far, in bytes, whatever it does.
    func memoryMost() throws -> UInt64 {
        try tell("memory")
        guard case .memory(_, let most) = try next() else {
            throw BenchError("\(name) told something else than its memory")
        }
        return most
    }

    /// Has the process do something, and waits until it has.
    func perform(_ order: Order) throws -> Report {
        try begin(order)
        return try next()
    }

    /// The nanoseconds that something took, by the process's own clock.
    @discardableResult
    func time(_ order: Order) throws -> UInt64 {
        guard case .took(let nanoseconds) = try perform(order) else {
            throw BenchError("\(name) told something else than how long it took")
        }
        return nanoseconds
    }

    /// The nanoseconds that each of several things took.
    func times(_ order: Order) throws -> [UInt64] {
        guard case .times(let nanoseconds) = try perform(order) else {
            throw BenchError("\(name) told something else than times")
        }
        return nanoseconds
    }

    /// What a sequencer has kept by now.
    func kept() throws -> Kept {
        guard case .kept(let kept) = try perform(.count) else {
            throw BenchError("\(name) told something else than what it keeps")
        }
        return kept
    }

    /// The memory that the process has now, and had at most.
    func memory() throws -> (now: UInt64, most: UInt64) {
        guard case .memory(let now, let most) = try perform(.weigh) else {
            throw BenchError("\(name) told something else than its memory")
        }
        return (now, most)
    }

    /// Has the process begin something.
    func begin(_ order: Order) throws {
        try tell(String(decoding: try JSONEncoder().encode(order), as: UTF8.self))
    }

    private func tell(_ line: String) throws {
        try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
    }

    /// Waits until the process is ready.
    func awaitReady() throws {
        guard case .ready = try next() else {
            throw BenchError("\(name) told something else than that it is ready")
        }
    }

    /// Waits for what the process tells next.
    func next() throws -> Report {
        let deadline = ContinuousClock.now + Self.patience
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                let line = Data(unread[..<end])
                unread.removeSubrange(...end)
                let report = try JSONDecoder().decode(Report.self, from: line)
                if case .failed(let message) = report { throw BenchError("\(name): \(message)") }
                return report
            }
            try read(until: deadline)
        }
    }

    private func read(until deadline: ContinuousClock.Instant) throws {
        let left = deadline - ContinuousClock.now
        guard left > .zero else { throw BenchError("\(name) took too long") }
        let descriptor = output.fileHandleForReading.fileDescriptor
        var item = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&item, 1, Int32(left / .milliseconds(1)) + 1) > 0 else { return }
        let bytes = output.fileHandleForReading.availableData
        guard !bytes.isEmpty else { throw BenchError("\(name) ended") }
        unread.append(contentsOf: bytes)
    }

    /// Ends the process, and waits until it has.
    func end() {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
        for pipe in [input, output] {
            pipe.fileHandleForReading.closeFile()
            pipe.fileHandleForWriting.closeFile()
        }
    }
}

/// Why a measurement was not made.
struct BenchError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
