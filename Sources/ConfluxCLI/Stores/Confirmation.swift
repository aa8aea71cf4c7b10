import ConfluxVocabulary
import ConfluxWorker
import Foundation

/// A question to the person at the terminal.
enum Confirmation {
    /// Asks, and returns only if the answer is yes. Without a terminal it does not ask, and
    /// returns.
    ///
    /// - Parameters:
    ///   - question: The question.
    ///   - interruption: An interruption counts as no.
    /// - Throws: `interrupted` if the answer is not yes.
    static func require(
        _ question: String, _ interruption: Interruption
    ) async throws(CommandFailure) {
        guard Appearance(of: STDIN_FILENO).isTerminal, Appearance.ofErrors.isTerminal else {
            return
        }
        Diagnostics.write(raw: "\(question) [y/N] ")
        let (answers, continuation) = AsyncStream.makeStream(of: String.self)
        interruption.whenFired { continuation.finish() }
        Thread {
            if let text = typed() { continuation.yield(text) }
            continuation.finish()
        }.start()
        let answer = await answers.first { _ in true }
        guard ["y", "yes"].contains(answer?.lowercased() ?? "") else {
            throw CommandFailure(
                .interrupted, code: "notConfirmed",
                "Nothing was changed. Answer y to go on, or give --yes.")
        }
    }

    /// The line that the person types; nil at the end of the input.
    private static func typed() -> String? {
        let taken = try? LineReader(path: "-", lineBytesMax: 80).next()
        guard case .text(let bytes)? = taken?.lines.first else { return nil }
        return try? String(utf8: bytes)
    }
}
