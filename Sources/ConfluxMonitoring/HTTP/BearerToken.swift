import ConfluxSystem
import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The token that requests must have if other machines can reach the address.
package struct BearerToken: Sendable {
    private static let lengths = 16...256

    private let bytes: [UInt8]

    /// Makes a token.
    ///
    /// - Parameter text: 16 to 256 printable ASCII characters without spaces; the result is nil for
    ///   any other text.
    package init?(_ text: String) {
        self.init(text.utf8)
    }

    private init?(_ text: some Sequence<UInt8>) {
        bytes = Array(text)
        guard Self.lengths.contains(bytes.count), bytes.allSatisfy({ (0x21...0x7e).contains($0) })
        else { return nil }
    }

    /// Reads a token from a file.
    ///
    /// - Parameter path: A file of one line that only its owner may read. If another user owns it, as with a
    ///   supervisor's credentials, its group may read it, too.
    /// - Throws: ``HTTPError``.
    package init(file path: String) throws(HTTPError) {
        let bytes = try Self.bytes(of: path)
        let lines: [String]
        do throws(TextLines.Fault) {
            // Of what is too long anyway, only the beginning was read.
            lines = bytes.count < Self.readBytesMax ? try TextLines.read(bytes) : []
        } catch {
            throw HTTPError(
                code: .invalidToken,
                message: "\(path) does not hold a token: in line \(error.line), \(error.fault).")
        }
        guard lines.count == 1, let token = BearerToken(lines[0]) else {
            throw HTTPError(
                code: .invalidToken,
                message: """
                    \(path) does not hold a token: it must have one line of 16 to 256 printable \
                    characters without spaces, as from openssl rand -hex 32.
                    """)
        }
        self = token
    }

    /// More than a token has, with a byte order mark and the line's end.
    private static let readBytesMax = lengths.upperBound + 6

    private static func bytes(of path: String) throws(HTTPError) -> [UInt8] {
        do throws(SystemFailure) {
            let file = try InputFile(path, waits: false)
            if try !file.isOpenToOthers() { return try file.read(upTo: readBytesMax) }
        } catch {
            let reason = error.reason(advice: "Give a file that there is.")
            throw HTTPError(
                code: .invalidToken, message: "The token \(path) can't be read: \(reason)")
        }
        throw tooOpen(path)
    }

    private static func tooOpen(_ path: String) -> HTTPError {
        HTTPError(
            code: .invalidToken,
            message: """
                Others may read the token \(path). Run chmod 600 \(path). If somebody may have read \
                it, write another one.
                """)
    }

    /// Compares a header `Authorization` with the token. The time depends on the length alone.
    ///
    /// - Parameter header: The header's value; nil without one.
    /// - Returns: Whether it has the token.
    package func admits(_ header: String?) -> Bool {
        guard let header else { return false }
        let words = header.utf8.split(separator: UInt8(ascii: " "), maxSplits: 1)
        guard words.count == 2, String(words[0])?.lowercased() == "bearer" else { return false }
        let said = words[1].drop { $0 == UInt8(ascii: " ") }
        guard said.count == bytes.count else { return false }
        return zip(said, bytes).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
