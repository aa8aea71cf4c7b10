import ConfluxVocabulary
import ConfluxWorker
import Foundation
import Synchronization

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
        let answer = await withCheckedContinuation { continuation in
            let waiter = Mutex<CheckedContinuation<String?, Never>?>(continuation)
            let tell: @Sendable (String?) -> Void = { text in
                waiter.withLock { waiter in
                    defer { waiter = nil }
                    return waiter
                }?.resume(returning: text)
            }
            interruption.whenFired { tell(nil) }
            Thread { tell(typed()) }.start()
        }
        guard ["y", "yes"].contains(answer?.lowercased()) else {
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
