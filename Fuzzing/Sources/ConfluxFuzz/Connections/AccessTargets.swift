import ConfluxAccess
import ConfluxZeroMQ

extension FuzzTarget {
    /// The file of authorised keys: any bytes lead to a table, or to an error that names one of their lines.
    static let accessTargets: [FuzzTarget] = [
        FuzzTarget(name: "authorized-keys", lengthMax: 4_096) { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            // A line ends with a line feed, whatever else Unicode calls a new line.
            let lines = text.utf8.split(separator: 10, omittingEmptySubsequences: false)
                .map { Substring($0) }
            let keys: AuthorizedKeys
            do throws(AuthorizedKeys.Fault) {
                keys = try AuthorizedKeys(text)
            } catch {
                require((1...lines.count).contains(error.line), "no line \(error.line)")
                require(!error.message.isEmpty, "a fault without words")
                // The lines before the error are valid, and those after it change nothing.
                _ = certain { try AuthorizedKeys(joined(lines[..<(error.line - 1)])) }
                require(fault(joined(lines[..<error.line])) == error, "another fault: \(error)")
                return
            }
            require(keys.count <= AuthorizedKeys.countMax, "\(keys.count) keys")
            // Blanks, comments and the order of lines don't matter.
            let words = lines.enumerated().map { index, line in
                let isMarked = index == 0 && line.unicodeScalars.first == "\u{FEFF}"
                let isReturned = line.utf8.last == 13
                return line.unicodeScalars.dropFirst(isMarked ? 1 : 0)
                    .dropLast(isReturned ? 1 : 0)
                    .split(whereSeparator: { " \t".unicodeScalars.contains($0) })
                    .map { Substring($0) }
            }
            let entries = words.filter {
                $0.first.map { $0.utf8.first != UInt8(ascii: "#") } ?? false
            }
            require(entries.count == keys.count, "\(keys.count) keys of \(entries.count) lines")
            let again = entries.reversed().map { $0.joined(separator: " ") }
            require(
                certain { try AuthorizedKeys(again.joined(separator: "\n")) } == keys,
                "another: \(again)")
            for entry in entries {
                guard let key = CurvePublicKey(String(entry[1])), let principal = keys[key] else {
                    fail("\(entry) is not there")
                }
                require(principal.name?.text == String(entry[0]), "another name: \(principal)")
            }
        }
    ]

    private static func joined(_ lines: ArraySlice<Substring>) -> String {
        lines.joined(separator: "\n")
    }

    private static func fault(_ text: String) -> AuthorizedKeys.Fault? {
        do throws(AuthorizedKeys.Fault) {
            _ = try AuthorizedKeys(text)
            return nil
        } catch {
            return error
        }
    }
}
