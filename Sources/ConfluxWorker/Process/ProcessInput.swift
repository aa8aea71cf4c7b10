import ConfluxArguments
import ConfluxVocabulary
import Foundation

#if canImport(Darwin)
    import Darwin
#else
    // Nothing in this process changes `environ`.
    @preconcurrency import Glibc
#endif

/// The arguments and the variables that this process was started with.
package enum ProcessInput {
    /// The variables that programs of Conflux read, besides their own, which begin with `CONFLUX_`.
    private static let names: Set = [
        "HOME", "JOURNAL_STREAM", "NOTIFY_SOCKET", "NO_COLOR", "TERM", "WATCHDOG_PID",
        "WATCHDOG_USEC", "XDG_CONFIG_HOME",
    ]

    /// The arguments after the program's name.
    ///
    /// - Parameter program: The program, for the error.
    /// - Returns: The arguments.
    /// - Throws: A usage error if one of them is not UTF-8.
    package static func arguments(of program: Program) throws(UsageError) -> [String] {
        var words: [String] = []
        for argument in all {
            do throws(ProcessWords.Fault) {
                words.append(try argument.get())
            } catch {
                throw program.usageError("\(error)")
            }
        }
        return words
    }

    /// Whether an argument is exactly this word, even if another argument is not UTF-8.
    package static func hasArgument(_ word: String) -> Bool { all.contains(.success(word)) }

    private static var all: [Result<String, ProcessWords.Fault>] {
        ProcessWords.arguments(UnsafePointer(CommandLine.unsafeArgv))
    }

    /// The variables that programs of Conflux read.
    ///
    /// - Parameter program: The program, for the error.
    /// - Returns: The variables that are set.
    /// - Throws: A usage error if the value of one of them is not UTF-8.
    package static func variables(of program: Program) throws(UsageError) -> [String: String] {
        do throws(ProcessWords.Fault) {
            return try checked()
        } catch {
            throw program.usageError("\(error)")
        }
    }

    /// The variables that programs of Conflux read; none if one of them is not UTF-8. A program's `main` has checked
    /// them before its command runs.
    package static var variables: [String: String] { (try? checked()) ?? [:] }

    private static func checked() throws(ProcessWords.Fault) -> [String: String] {
        #if canImport(Darwin)
            guard let entries = _NSGetEnviron().pointee else { return [:] }
        #else
            let entries = environ
        #endif
        return try ProcessWords.variables(UnsafePointer(entries)) {
            $0.hasPrefix("CONFLUX_") || names.contains($0)
        }
    }
}
