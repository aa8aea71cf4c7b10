import Foundation
import Spawning
import Synchronization

/// The lines that a process writes. They are kept, and tests wait for them with a deadline.
final class Lines: Sendable {
    private struct Waiter {
        let index: Int
        let outcome: OneTime<Arrival>
    }

    private enum Arrival {
        case line(String)
        case end
        case late
    }

    private struct State {
        var lines: [String] = []
        var isClosed = false
        var waiters: [Waiter] = []
    }

    private let title: String
    private let state = Mutex(State())

    init(of title: String) {
        self.title = title
    }

    // MARK: Reading

    /// Reads until the end, on a new thread, and closes the descriptor.
    func read(from descriptor: Int32) {
        let thread = Thread {
            var rest: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = Foundation.read(descriptor, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                var lines: [String] = []
                rest = split(rest, buffer[..<count]) { lines.append($0) }
                self.append(lines)
            }
            if !rest.isEmpty { self.append([String(decoding: rest, as: UTF8.self)]) }
            Foundation.close(descriptor)
            self.close()
        }
        thread.name = "lines"
        thread.start()
    }

    private func append(_ lines: [String]) {
        guard !lines.isEmpty else { return }
        let ready = state.withLock { state in
            state.lines += lines
            let ready = state.waiters.filter { $0.index < state.lines.count }
            state.waiters.removeAll { $0.index < state.lines.count }
            return ready.map { ($0.outcome, state.lines[$0.index]) }
        }
        for (outcome, line) in ready { outcome.give(.line(line)) }
    }

    /// Marks the end: no further line follows.
    func close() {
        let waiters = state.withLock { state in
            state.isClosed = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.outcome.give(.end) }
    }

    // MARK: Waiting

    /// The lines that have arrived.
    var soFar: [String] { state.withLock { $0.lines } }

    /// How many lines have arrived.
    var count: Int { state.withLock { $0.lines.count } }

    /// Waits for the line with an index.
    ///
    /// - Returns: The line; nil if the output ended before it.
    /// - Throws: ``Failure`` if it has not arrived in time.
    func line(_ index: Int, within limit: Duration = .seconds(60)) async throws -> String? {
        let outcome = OneTime<Arrival>()
        let known = state.withLock { state -> Arrival? in
            if index < state.lines.count { return .line(state.lines[index]) }
            if state.isClosed { return .end }
            state.waiters.append(Waiter(index: index, outcome: outcome))
            return nil
        }
        if known == nil { outcome.after(limit, give: .late) }
        let arrival = if let known { known } else { await outcome.value() }
        switch arrival {
        case .line(let line): return line
        case .end: return nil
        case .late: throw Failure("no line \(index + 1) of \(title) within \(limit)")
        }
    }

    /// Waits for the first matching line, from an index on.
    ///
    /// - Returns: The line and its index.
    /// - Throws: ``Failure`` if the output ended before it, or a line did not arrive in time.
    func first(
        from start: Int = 0, within limit: Duration = .seconds(60),
        where isWanted: (String) throws -> Bool
    ) async throws -> (index: Int, line: String) {
        var index = start
        while let line = try await line(index, within: limit) {
            if try isWanted(line) { return (index, line) }
            index += 1
        }
        throw Failure(
            "\(title) ended before what was wanted; it had:\n"
                + soFar.suffix(20).map { "    \($0.prefix(400))" }.joined(separator: "\n"))
    }

    /// Waits for the end of the output.
    ///
    /// - Returns: All lines.
    func all(within limit: Duration = .seconds(60)) async throws -> [String] {
        while try await line(.max, within: limit) != nil {}
        return soFar
    }
}

/// Splits bytes into lines.
///
/// - Parameters:
///   - rest: The incomplete line from before.
///   - bytes: The bytes that follow.
///   - take: Called with each complete line, without its line break.
/// - Returns: The incomplete line at the end.
func split(
    _ rest: [UInt8], _ bytes: ArraySlice<UInt8>, _ take: (String) throws -> Void
) rethrows -> [UInt8] {
    var rest = rest
    try bytes.withUnsafeBytes { buffer in
        var start = 0
        while start < buffer.count {
            let pointer = buffer.baseAddress! + start
            let count = buffer.count - start
            guard let end = memchr(pointer, 0x0A, count) else {
                rest += UnsafeRawBufferPointer(start: pointer, count: count)
                return
            }
            let length = UnsafeRawPointer(end) - pointer
            let line = UnsafeRawBufferPointer(start: pointer, count: length)
            if rest.isEmpty {
                try take(String(decoding: line, as: UTF8.self))
            } else {
                rest += line
                try take(String(decoding: rest, as: UTF8.self))
                rest = []
            }
            start += length + 1
        }
    }
    return rest
}

/// Reads a file line by line, without loading all of it.
func forEachLine(of path: String, _ take: (String) throws -> Void) throws {
    guard let file = FileHandle(forReadingAtPath: path) else { throw Failure("no file \(path)") }
    var rest: [UInt8] = []
    while let data = try file.read(upToCount: 1 << 20), !data.isEmpty {
        rest = try split(rest, Array(data)[...], take)
    }
    if !rest.isEmpty { try take(String(decoding: rest, as: UTF8.self)) }
    try file.close()
}
