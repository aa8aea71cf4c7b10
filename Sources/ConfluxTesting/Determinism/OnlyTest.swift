import ConfluxVocabulary
import Foundation
import Testing

/// How to start this program so that it runs the present test and no other.
struct OnlyTest {
    let program: URL
    let arguments: [String]

    /// Finds out how to do that.
    ///
    /// - Parameters:
    ///   - place: A place in the test.
    ///   - function: The function around it.
    ///   - files: Has a file for the list of tests.
    ///   - isolation: The caller's actor.
    /// - Returns: The program and its arguments.
    /// - Throws: ``CheckFailure`` if it can't be found out.
    static func current(
        at place: SourcePlace, in function: StaticString, _ files: RepeatFiles,
        isolation: isolated (any Actor)? = #isolation
    ) async throws(CheckFailure) -> OnlyTest {
        guard let path = Bundle.main.executablePath else {
            throw CheckFailure(
                message:
                    "this process does not know its own program. Run the tests by `swift test`.")
        }
        let program = URL(fileURLWithPath: path)
        if let test = Test.current {
            let filter = "^\(escaped(String(describing: test.id)))$"
            return OnlyTest(
                program: program,
                arguments: bundle + ["--testing-library", "swift-testing", "--filter", filter])
        }
        if FailureReporter.runsSwiftTesting {
            throw CheckFailure(
                message:
                    "a detached task does not know its test: call `check` in the test's own task")
        }
        return try await xctest(program, at: place, in: function, files)
    }

    /// The argument that names the bundle of the tests, if the program is one that loads them.
    private static var bundle: [String] {
        let arguments = ProcessWords.arguments(UnsafePointer(CommandLine.unsafeArgv))
            .compactMap { try? $0.get() }
        guard let index = arguments.firstIndex(of: "--test-bundle-path"),
            index + 1 < arguments.count
        else { return [] }
        return Array(arguments[index...(index + 1)])
    }

    /// A regular expression that matches exactly this text.
    private static func escaped(_ text: String) -> String {
        text.map { $0.isASCII && !$0.isLetter && !$0.isNumber ? "\\\($0)" : "\($0)" }.joined()
    }

    /// XCTest does not say which test is running, so the test is looked up by its name in the list
    /// of all tests.
    private static func xctest(
        _ program: URL, at place: SourcePlace, in function: StaticString, _ files: RepeatFiles,
        isolation: isolated (any Actor)? = #isolation
    ) async throws(CheckFailure) -> OnlyTest {
        #if canImport(Darwin)
            throw CheckFailure(
                message: "on this system that needs Swift Testing: write the test with `@Test`")
        #else
            let listing = try OtherProcess(
                program, ["--list-tests"], environment: OtherEnvironment(),
                output: files.list, timeout: .seconds(60))
            _ = await listing.end()
            let list = (try? String(contentsOf: files.list, encoding: .utf8)) ?? ""
            let module = "\(place.fileID)".prefix { $0 != "/" }
            let name = "\(function)".prefix { $0 != "(" }
            let tests = list.split(separator: "\n").filter {
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
}
