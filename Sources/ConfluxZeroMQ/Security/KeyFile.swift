import CSodium
import ConfluxSystem
import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Why a key file can't be used.
public struct KeyFileError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it is.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        /// There is no such file, or it can't be read.
        case unreadable
        /// Others besides its owner may read it.
        case tooOpen
        /// It holds no key, or the wrong half of a pair.
        case notAKey
        /// The file exists already.
        case exists
        /// It can't be written.
        case unwritable
        /// The text is a key, and a file has it as its path.
        case ambiguous
    }

    /// What kind of failure it is.
    public let code: Code
    /// What happened and what to do.
    public let message: String

    /// The message.
    public var description: String { message }
}

/// Key pairs in files: `NAME.secret`, which only its owner may read, and `NAME.public`. Each file has two lines: what
/// it is, and the key in 40 characters of Z85.
public enum KeyFile {
    private static let secretTitle = "conflux-secret-key"
    private static let publicTitle = "conflux-public-key"
    /// The most bytes that are read of a key file.
    private static let byteCountMax = 256

    /// Writes a pair into two new files.
    ///
    /// - Parameters:
    ///   - pair: The pair.
    ///   - name: The path, to which `.secret` and `.public` are appended.
    /// - Returns: The paths of both.
    /// - Throws: ``KeyFileError`` if one of them exists, or can't be written. Existing files stay as they are.
    @discardableResult
    public static func write(
        _ pair: CurveKeyPair, name: String
    ) throws(KeyFileError) -> (secret: String, public: String) {
        let paths = (secret: name + ".secret", public: name + ".public")
        try create(paths.secret, mode: 0o600, "\(secretTitle)\n\(pair.secretText)\n")
        do throws(KeyFileError) {
            try create(paths.public, mode: 0o644, "\(publicTitle)\n\(pair.publicKey)\n")
        } catch {
            unlink(paths.secret)
            throw error
        }
        return paths
    }

    /// Reads a pair.
    ///
    /// - Parameter path: The file with the secret half.
    /// - Returns: Both halves.
    /// - Throws: ``KeyFileError``, also if others may read the file.
    public static func readPair(_ path: String) throws(KeyFileError) -> CurveKeyPair {
        let text = try read(path, title: secretTitle, isSecret: true)
        guard let pair = CurveKeyPair(secretText: text) else { throw notAKey(path, secretTitle) }
        return pair
    }

    /// Reads a public key.
    ///
    /// - Parameter path: The file.
    /// - Returns: The key.
    /// - Throws: ``KeyFileError``.
    public static func readPublicKey(_ path: String) throws(KeyFileError) -> CurvePublicKey {
        guard let key = CurvePublicKey(try read(path, title: publicTitle, isSecret: false)) else {
            throw notAKey(path, publicTitle)
        }
        return key
    }

    /// Reads a public key that is given as its text, or as the path of its file.
    ///
    /// - Parameter text: The key's 40 characters, or the path.
    /// - Returns: The key.
    /// - Throws: ``KeyFileError``; `ambiguous` if the text is a key and there is a file with this path, too. Every other
    ///   spelling of the path, such as one that begins with `./`, has another length, and is no key.
    public static func publicKey(_ text: String) throws(KeyFileError) -> CurvePublicKey {
        guard let key = CurvePublicKey(text) else { return try readPublicKey(text) }
        guard access(text, F_OK) != 0 else {
            throw KeyFileError(
                code: .ambiguous,
                message: """
                    \(text) has the 40 characters of a key, and is a file, too. If you mean the file, write \
                    \(unambiguous(text)).
                    """)
        }
        return key
    }

    /// A path of the same file that can't be taken for a key.
    ///
    /// - Parameter path: A path.
    /// - Returns: The path itself if it can't be taken for a key.
    public static func unambiguous(_ path: String) -> String {
        guard CurvePublicKey(path) != nil else { return path }
        return Folder.isAbsolute(path) ? "/." + path : "./" + path
    }

    // MARK: Files

    private static func read(
        _ path: String, title: String, isSecret: Bool
    ) throws(KeyFileError) -> String {
        var bytes = try bytes(of: path, isSecret: isSecret)
        defer { sodium_memzero(&bytes, bytes.count) }
        // A file without its last line feed is cut off.
        let isWhole = bytes.last == UInt8(ascii: "\n")
        let lines: [String]
        do throws(TextLines.Fault) {
            lines = try TextLines.read(bytes)
        } catch {
            throw notAKey(path, title, ". Here, \(error)")
        }
        guard let first = lines.first, [secretTitle, publicTitle].contains(first) else {
            throw notAKey(path, title)
        }
        guard first == title else {
            let half = isSecret ? "secret" : "public"
            throw KeyFileError(
                code: .notAKey,
                message: """
                    \(path) is the other half of a pair: give the \(half) key, whose name ends in \
                    .\(half).
                    """)
        }
        guard lines.count == 2, isWhole else { throw notAKey(path, title) }
        return lines[1]
    }

    private static func bytes(of path: String, isSecret: Bool) throws(KeyFileError) -> [UInt8] {
        do throws(SystemFailure) {
            let file = try InputFile(path)
            let isTooOpen = isSecret ? try file.isOpenToOthers() : false
            if !isTooOpen { return try file.read(upTo: byteCountMax) }
        } catch {
            let reason = error.reason(
                advice: "Give a file that there is; conflux keygen makes keys.")
            throw KeyFileError(
                code: .unreadable, message: "The key \(path) can't be read: \(reason)")
        }
        throw tooOpen(path)
    }

    private static func tooOpen(_ path: String) -> KeyFileError {
        KeyFileError(
            code: .tooOpen,
            message: """
                Others may read the secret key \(path). Run chmod 600 \(path). If somebody may \
                have read it, make another pair with conflux keygen.
                """)
    }

    private static func notAKey(
        _ path: String, _ title: String, _ fault: String = ""
    ) -> KeyFileError {
        KeyFileError(
            code: .notAKey,
            message: """
                \(path) does not hold a key: it must have two lines, \(title) and 40 characters, \
                as conflux keygen writes them\(fault).
                """)
    }

    private static func create(
        _ path: String, mode: mode_t, _ text: String
    ) throws(KeyFileError) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0 else {
            let number = errno
            guard number != EEXIST else {
                throw KeyFileError(
                    code: .exists,
                    message: """
                        \(path) exists already, and is not overwritten. Choose another name, or \
                        remove it if nobody needs the key.
                        """)
            }
            throw unwritable(SystemFailure(number, at: path), path)
        }
        defer { close(descriptor) }
        var bytes = Array(text.utf8)
        defer { sodium_memzero(&bytes, bytes.count) }
        let count = writeBytes(descriptor, bytes)
        guard count == bytes.count, fsync(descriptor) == 0 else {
            let number = count >= 0 && count < bytes.count ? ENOSPC : errno
            // Before the file is gone, which may leave room.
            let failure = SystemFailure(number, at: path)
            unlink(path)
            throw unwritable(failure, path)
        }
    }

    private static func unwritable(_ failure: SystemFailure, _ path: String) -> KeyFileError {
        let reason = failure.reason(advice: "Choose a folder that there is.")
        return KeyFileError(
            code: .unwritable, message: "\(path) can't be written: \(reason)")
    }
}

// Outside the type: inside it, its own function hides the system's `write`.

private func writeBytes(_ descriptor: Int32, _ bytes: [UInt8]) -> Int {
    write(descriptor, bytes, bytes.count)
}
