import Foundation
import Synchronization
import Testing

/// A process of this library's own.
final class OtherProcess: Sendable {
    /// How it ended.
    enum End {
        case exit(Int32)
        case signal(Int32)
        /// It was ended, since it took too long.
        case late
    }

    private let process = Process()
    private let hasEnded: AsyncStream<Void>
    private let isLate = Atomic(false)

    /// Starts it, without input.
    ///
    /// - Parameters:
    ///   - program: The program.
    ///   - arguments: Its arguments.
    ///   - environment: All of its environment.
    ///   - output: Where it writes what it prints.
    /// - Throws: ``CheckFailure`` when it can't be started.
    init(
        _ program: URL, _ arguments: [String], environment: [String: String], output: URL
    ) throws(CheckFailure) {
        process.executableURL = program
        process.arguments = arguments
        process.environment = environment
        process.standardInput = FileHandle.nullDevice
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        hasEnded = stream
        process.terminationHandler = { _ in continuation.finish() }
        do {
            try Data().write(to: output)
            let file = try FileHandle(forWritingTo: output)
            process.standardOutput = file
            process.standardError = file
            try process.run()
            try file.close()
        } catch {
            throw CheckFailure(message: "\(program.path) can't be started: \(error)")
        }
    }

    /// Waits for its end, and ends it if that takes too long.
    func end(
        within timeout: Duration, isolation: isolated (any Actor)? = #isolation
    ) async -> End {
        let deadline = Deadline(in: timeout) { [self] in
            isLate.store(true, ordering: .relaxed)
            kill(process.processIdentifier, SIGKILL)
        }
        for await _ in hasEnded {}
        deadline.cancel()
        // A test that is cancelled waits no longer.
        if Task.isCancelled { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
        if isLate.load(ordering: .relaxed) { return .late }
        let status = process.terminationStatus
        return process.terminationReason == .exit ? .exit(status) : .signal(status)
    }
}

/// How this program is told to run the present test and no other.
struct OnlyTest {
    let program: URL
    let arguments: [String]

    /// How this program is told so.
    ///
    /// - Parameters:
    ///   - place: A place in the test.
    ///   - function: The function around it.
    /// - Returns: That.
    /// - Throws: ``CheckFailure`` where that can't be found out.
    static func current(
        at place: SourcePlace, in function: StaticString
    ) throws(CheckFailure) -> OnlyTest {
        guard let path = Bundle.main.executablePath else {
            throw CheckFailure(message: "this process does not know its own program")
        }
        let program = URL(fileURLWithPath: path)
        if let test = Test.current {
            let filter = "^\(escaped(String(describing: test.id)))$"
            return OnlyTest(
                program: program,
                arguments: bundle + ["--testing-library", "swift-testing", "--filter", filter])
        }
        return try xctest(program, at: place, in: function)
    }

    /// Where the tests are, in case the program is one that loads them.
    private static var bundle: [String] {
        let arguments = CommandLine.arguments
        guard let index = arguments.firstIndex(of: "--test-bundle-path"),
            index + 1 < arguments.count
        else { return [] }
        return Array(arguments[index...(index + 1)])
    }

    /// A text as a regular expression that matches it.
    private static func escaped(_ text: String) -> String {
        text.map { $0.isASCII && !$0.isLetter && !$0.isNumber ? "\\\($0)" : "\($0)" }.joined()
    }

    /// XCTest does not say which test runs; it is found by its name among all there are.
    private static func xctest(
        _ program: URL, at place: SourcePlace, in function: StaticString
    ) throws(CheckFailure) -> OnlyTest {
        #if canImport(Darwin)
            throw CheckFailure(
                message: "on this system that needs Swift Testing: write the test with `@Test`")
        #else
            let module = "\(place.fileID)".prefix { $0 != "/" }
            let name = "\(function)".prefix { $0 != "(" }
            let tests = try list(program).filter {
                $0.hasPrefix("\(module).") && $0.hasSuffix("/\(name)")
            }
            guard !tests.isEmpty else {
                throw CheckFailure(
                    message: """
                        there is no test \(name) in \(module): with XCTest, call `check` in the test method \
                        itself
                        """)
            }
            return OnlyTest(program: program, arguments: [tests.joined(separator: ",")])
        #endif
    }

    /// The names of all tests of XCTest's in this program.
    private static func list(_ program: URL) throws(CheckFailure) -> [Substring] {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = program
        process.arguments = ["--list-tests"]
        process.standardOutput = pipe
        process.standardInput = FileHandle.nullDevice
        do {
            try process.run()
            let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
            process.waitUntilExit()
            return String(decoding: output, as: UTF8.self).split(separator: "\n")
        } catch {
            throw CheckFailure(message: "\(program.path) can't be started: \(error)")
        }
    }
}
