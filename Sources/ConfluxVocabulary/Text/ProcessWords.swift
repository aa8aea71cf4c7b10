/// The arguments and the variables that a process was started with, as text.
///
/// The system gives both as bytes. A word that is not UTF-8 is refused: it may be a path or a key, and a repaired one
/// would be another path or another key.
package enum ProcessWords {
    /// The words of a C array that ends with a null pointer.
    package typealias Pointers = UnsafePointer<UnsafeMutablePointer<CChar>?>

    /// A word that is not UTF-8.
    package struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
        /// Which word it is: `argument 2`, or `the variable CONFLUX_DATA`.
        package let word: String
        /// Where it is not UTF-8.
        package let fault: InvalidUTF8

        /// The word and the place: `argument 2 is not UTF-8: byte 0xE9 at offset 3`.
        package var description: String {
            "\(word) is not UTF-8: byte \(fault.hexadecimal) at offset \(fault.offset)"
        }
    }

    /// Reads the arguments after the program's name.
    ///
    /// - Parameter words: All words of the command line, with the program's name first.
    /// - Returns: For each argument its text, or its fault.
    package static func arguments(_ words: Pointers) -> [Result<String, Fault>] {
        var arguments: [Result<String, Fault>] = []
        guard words[0] != nil else { return arguments }
        while let word = words[arguments.count + 1] {
            let name = "argument \(arguments.count + 1)"
            arguments.append(
                Result { () throws(InvalidUTF8) in try String(utf8CString: word) }
                    .mapError { Fault(word: name, fault: $0) })
        }
        return arguments
    }

    /// Reads variables.
    ///
    /// - Parameters:
    ///   - entries: The process's environment: texts of the form `NAME=VALUE`.
    ///   - isRead: Whether the program reads the variable of this name. Others are not looked at, since they may have
    ///     any bytes.
    /// - Returns: The variables that the program reads. If a name is there twice, its first value counts.
    /// - Throws: ``Fault`` if the value of one of them is not UTF-8.
    package static func variables(
        _ entries: Pointers, where isRead: (String) -> Bool
    ) throws(Fault) -> [String: String] {
        var variables: [String: String] = [:]
        var entries = entries
        while let entry = entries.pointee {
            entries += 1
            var length = 0
            while entry[length] != 0, entry[length] != CChar(bitPattern: UInt8(ascii: "=")) {
                length += 1
            }
            let bytes = (0..<length).map { UInt8(bitPattern: entry[$0]) }
            guard entry[length] != 0, let name = try? String(utf8: bytes), isRead(name),
                variables[name] == nil
            else { continue }
            do throws(InvalidUTF8) {
                variables[name] = try String(utf8CString: entry + length + 1)
            } catch {
                throw Fault(word: "the variable \(name)", fault: error)
            }
        }
        return variables
    }
}
