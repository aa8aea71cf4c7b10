import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A call of the system that failed.
///
/// This is the only place that asks for the system's words. A message that has to do with a file or an address names
/// it, and ends with ``reason(advice:)``.
package struct SystemFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The error number (`errno`).
    package let number: Int32
    /// What the number means for a file; nil if it means something else.
    package let trouble: SystemTrouble?

    /// A failure to do something with a file.
    ///
    /// - Parameters:
    ///   - number: The error number.
    ///   - path: The file.
    package init(_ number: Int32, at path: String) {
        self.number = number
        trouble = SystemTrouble(number: number, at: path)
    }

    /// A failure that concerns no path.
    ///
    /// - Parameter number: The error number.
    package init(_ number: Int32) {
        self.number = number
        trouble = SystemTrouble(number: number, hasInodes: true)
    }

    /// What the system says, such as "No such file or directory".
    package var words: String { String(shownCString: strerror(number)) }

    /// What the system says, and what to do about it.
    ///
    /// - Parameter advice: What to do if the number does not say it, in whole sentences.
    /// - Returns: Whole sentences. The first one is the system's words.
    package func reason(advice: String) -> String { "\(words). \(trouble?.advice ?? advice)" }

    /// What the system says.
    package var description: String { words }
}
