import ConfluxSystem
import ConfluxVocabulary
import ConfluxWorker
import Foundation
import Synchronization

/// Reads a file or a pipe line by line, on the calling thread. Another thread can stop it.
///
/// Lines are counted from 1. A line that is too long is reported and skipped, so that it needs no
/// more memory than the bound.
final class LineReader: Sendable {
    /// One line, without its line break.
    enum Line: Equatable {
        case text([UInt8])
        case tooLong
    }

    private struct Content {
        var rest: [UInt8] = []
        /// Whether the current line has already exceeded the bound.
        var isSkipping = false
        var number = 0
    }

    private static let chunkBytes = 64 << 10
    private let descriptor: Int32
    /// What it reads, in a message.
    private let title: String
    private let lineBytesMax: Int
    private let state = Mutex(Content())
    private let isStoppedFlag = Atomic(false)
    /// Wakes a reader that waits for input.
    private let stopPipe: (read: Int32, write: Int32)

    /// The size of the file in bytes; nil if the input is not a file.
    private let bytesTotal: Int?
    private let bytesRead = Atomic(0)

    /// The share of the file that was read, from 0 to 1; nil if the input's size is unknown.
    var share: Double? {
        bytesTotal.map { min(1, Double(bytesRead.load(ordering: .relaxed)) / Double(max($0, 1))) }
    }

    /// Opens the input.
    ///
    /// - Parameters:
    ///   - path: The file; `-` for standard input.
    ///   - lineBytesMax: The most bytes of a line.
    /// - Throws: ``CommandFailure`` with the system's words if it can't be read.
    init(path: String, lineBytesMax: Int) throws(CommandFailure) {
        self.lineBytesMax = lineBytesMax
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            let reason = SystemFailure(errno).reason(advice: "Run the command again.")
            throw CommandFailure(.failed, "The system can't create a pipe: \(reason)")
        }
        stopPipe = (ends[0], ends[1])
        descriptor = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
        var status = stat()
        title = path == "-" ? "standard input" : path
        // The status of a standard input that was closed says nothing. Reading no bytes fails.
        guard descriptor >= 0, fstat(descriptor, &status) == 0,
            path != "-" || read(descriptor, nil, 0) == 0
        else {
            let failure = SystemFailure(errno, at: path)
            if path == "-" {
                let reason = failure.reason(advice: "Give the command an input.")
                throw CommandFailure(.noInput, "Standard input can't be read: \(reason)")
            }
            let reason = failure.reason(advice: "Name a file that exists.")
            throw CommandFailure(.noInput, "\(path) can't be read: \(reason)")
        }
        guard status.st_mode & S_IFMT != S_IFDIR else {
            throw CommandFailure(.noInput, "\(path) is a folder; name a file.")
        }
        bytesTotal = status.st_mode & S_IFMT == S_IFREG ? Int(status.st_size) : nil
    }

    deinit {
        close(descriptor)
        close(stopPipe.read)
        close(stopPipe.write)
    }

    /// Whether it was told to stop.
    var isStopped: Bool { isStoppedFlag.load(ordering: .acquiring) }

    /// Makes the reader end as soon as it can. Any thread may call it.
    func stop() {
        isStoppedFlag.store(true, ordering: .releasing)
        var byte: UInt8 = 0
        _ = write(stopPipe.write, &byte, 1)
    }

    /// Waits for input, and takes the complete lines.
    ///
    /// - Returns: The number of the first line, and the lines; nil at the end, or if it was
    ///   stopped.
    /// - Throws: ``CommandFailure`` with the system's words if it can't be read.
    func next() throws(CommandFailure) -> (first: Int, lines: [Line])? {
        var chunk = [UInt8](repeating: 0, count: Self.chunkBytes)
        while true {
            guard waitForInput() else { return nil }
            let count = read(descriptor, &chunk, chunk.count)
            if count < 0 {
                if errno == EINTR || errno == EAGAIN { continue }
                let reason = SystemFailure(errno).reason(advice: "Dispatch the rest again.")
                throw CommandFailure(
                    .noInput,
                    "The earlier lines were dispatched, and the rest of \(title) can't be read: \(reason)"
                )
            }
            bytesRead.add(max(count, 0), ordering: .relaxed)
            if count == 0 { return state.withLock { Self.takeLast(&$0) } }
            let taken = state.withLock { state in
                let first = state.number + 1
                let lines = take(chunk[..<count], &state)
                return (first: first, lines: lines)
            }
            if !taken.lines.isEmpty { return taken }
        }
    }

    /// - Returns: Whether there is input or its end; false if it was stopped.
    private func waitForInput() -> Bool {
        var files = [
            pollfd(fd: stopPipe.read, events: Int16(POLLIN), revents: 0),
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
        ]
        while !isStopped {
            if poll(&files, 2, -1) > 0, files[1].revents != 0 { return !isStopped }
        }
        return false
    }

    private func take(_ chunk: ArraySlice<UInt8>, _ state: inout Content) -> [Line] {
        var lines: [Line] = []
        var start = chunk.startIndex
        while let end = chunk[start...].firstIndex(of: UInt8(ascii: "\n")) {
            append(chunk[start..<end], &state)
            lines.append(Self.takeLine(&state))
            start = end + 1
        }
        append(chunk[start...], &state)
        return lines
    }

    private func append(_ piece: ArraySlice<UInt8>, _ state: inout Content) {
        guard !state.isSkipping else { return }
        if state.rest.count + piece.count > lineBytesMax {
            state.isSkipping = true
            state.rest = []
        } else {
            state.rest += piece
        }
    }

    /// Takes the text after the last line break.
    private static func takeLast(_ state: inout Content) -> (first: Int, lines: [Line])? {
        guard state.isSkipping || !state.rest.isEmpty else { return nil }
        let line = takeLine(&state)
        return (state.number, [line])
    }

    /// Takes the line whose end has come.
    private static func takeLine(_ state: inout Content) -> Line {
        defer {
            state.rest.removeAll(keepingCapacity: true)
            state.isSkipping = false
            state.number += 1
        }
        guard !state.isSkipping else { return .tooLong }
        let bytes = state.number == 0 ? TextLines.afterMark(state.rest[...]) : state.rest[...]
        return .text(Array(TextLines.withoutReturn(bytes)))
    }
}
