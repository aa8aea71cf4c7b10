import Foundation

/// A process that was started, and the lines that it writes. Only one thread uses it.
final class Child {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var unread: [UInt8] = []
    private var hasEnded = false
    private let name: String

    /// How long a process may take for anything that is awaited.
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

    /// Stops the process, as SIGSTOP does, until it is resumed.
    func suspend() throws {
        guard process.suspend() else { throw BenchError("\(name) can't be stopped") }
    }

    func resume() throws {
        guard process.resume() else { throw BenchError("\(name) can't be resumed") }
    }

    /// The processor time that the process has used.
    func usedProcessorNanoseconds() throws -> UInt64 {
        try tell("usage")
        guard case .usage(let nanoseconds) = try next() else {
            throw BenchError("\(name) told something else than its usage")
        }
        return nanoseconds
    }

    /// The most memory that the process has used so far, in bytes. It answers even while it is busy.
    func memoryMost() throws -> UInt64 {
        try tell("memory")
        guard case .memory(_, let most) = try next() else {
            throw BenchError("\(name) told something else than its memory")
        }
        return most
    }

    /// Gives the process an order, and waits until it is done.
    func perform(_ order: Order) throws -> Report {
        try begin(order)
        return try next()
    }

    /// The nanoseconds that an order took, by the process's own clock.
    @discardableResult
    func time(_ order: Order) throws -> UInt64 {
        guard case .took(let nanoseconds) = try perform(order) else {
            throw BenchError("\(name) told something else than how long it took")
        }
        return nanoseconds
    }

    /// The nanoseconds that each part of an order took.
    func times(_ order: Order) throws -> [UInt64] {
        guard case .times(let nanoseconds) = try perform(order) else {
            throw BenchError("\(name) told something else than times")
        }
        return nanoseconds
    }

    /// What a sequencer has kept so far.
    func kept() throws -> Kept {
        guard case .kept(let kept) = try perform(.count) else {
            throw BenchError("\(name) told something else than what it keeps")
        }
        return kept
    }

    /// The memory that the process uses now, and the most that it has used.
    func memory() throws -> (now: UInt64, most: UInt64) {
        guard case .memory(let now, let most) = try perform(.weigh) else {
            throw BenchError("\(name) told something else than its memory")
        }
        return (now, most)
    }

    /// Gives the process an order.
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

    /// Waits for the next report of the process.
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
        guard !hasEnded else { return }
        hasEnded = true
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
        for pipe in [input, output] {
            pipe.fileHandleForReading.closeFile()
            pipe.fileHandleForWriting.closeFile()
        }
    }
}

/// Why a measurement could not be made.
struct BenchError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
