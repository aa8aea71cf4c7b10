import Foundation
import Testing

/// A program that was built with the tests, and the lines that it prints.
final class Program {
    private let process = Process()
    private var lines: AsyncStream<String>.Iterator

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - name: Its name.
    ///   - arguments: Its arguments.
    ///   - variables: Its environment.
    /// - Throws: What the system says, if it can't be started.
    init(_ name: String, _ arguments: [String], variables: [String: String] = [:]) throws {
        let (stream, continuation) = AsyncStream.makeStream(of: String.self)
        lines = stream.makeAsyncIterator()
        let output = Pipe()
        process.executableURL = Self.folder.appendingPathComponent(name)
        process.arguments = arguments
        process.environment = variables
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        try process.run()
        let reader = Thread {
            var rest = Data()
            while case let data = output.fileHandleForReading.availableData, !data.isEmpty {
                rest += data
                while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                    continuation.yield(String(decoding: rest[..<end], as: UTF8.self))
                    rest = rest[(end + 1)...]
                }
            }
            continuation.finish()
        }
        reader.start()
    }

    deinit {
        kill()
    }

    /// Waits for the next line with a text.
    ///
    /// - Returns: What comes behind the text.
    func rest(behind text: String) async throws -> String {
        while let line = await lines.next() {
            if let range = line.range(of: text) { return String(line[range.upperBound...]) }
        }
        throw Ended(title: "\(process.arguments ?? [])", missing: text)
    }

    /// The lines up to its end.
    func all() async -> [String] {
        var all: [String] = []
        while let line = await lines.next() { all.append(line) }
        return all
    }

    /// Kills the program, and waits for its end.
    func kill() {
        if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }

    private struct Ended: Error {
        let title: String
        let missing: String
    }

    /// Where the programs are. On Linux, the tests are a program in the same folder. On macOS, they are a bundle that
    /// another program loads.
    private static var folder: URL {
        #if canImport(Darwin)
            Bundle(for: Program.self).bundleURL.deletingLastPathComponent()
        #else
            URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
                .deletingLastPathComponent()
        #endif
    }
}
