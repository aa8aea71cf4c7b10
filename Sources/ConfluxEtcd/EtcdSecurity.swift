import ConfluxVocabulary
import Foundation

/// How connections to etcd are encrypted. Each file is in PEM form.
public struct EtcdSecurity: Sendable, Hashable {
    /// A file with the certificates of the authorities that sign the certificates of etcd's members; no other
    /// authority is trusted. nil: those that the system trusts.
    public var authorityFile: String?
    /// A file with this program's certificate, if etcd asks for one.
    public var certificateFile: String?
    /// A file with the secret key of that certificate, not encrypted; nil if the certificate's file has it.
    public var keyFile: String?

    /// Makes the settings.
    ///
    /// - Parameters:
    ///   - authorityFile: The certificates of the authorities to trust.
    ///   - certificateFile: This program's certificate.
    ///   - keyFile: The secret key of that certificate.
    public init(
        authorityFile: String? = nil, certificateFile: String? = nil, keyFile: String? = nil
    ) {
        self.authorityFile = authorityFile
        self.certificateFile = certificateFile
        self.keyFile = keyFile
    }
}

/// A user and a password, for an etcd that has authentication enabled.
public struct EtcdCredentials: Sendable, Hashable {
    /// Why a file of credentials can't be used.
    public struct FileError: Error, CustomStringConvertible {
        /// What happened, and what to do.
        public let description: String
    }

    /// The most bytes of a credentials file.
    static let fileBytesMax = 4_096

    /// The user's name.
    public var user: String
    /// The password.
    public var password: String

    /// Makes credentials.
    ///
    /// - Parameters:
    ///   - user: The user's name.
    ///   - password: The password.
    public init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// Reads a file with one line, `USER:PASSWORD`.
    ///
    /// - Parameter path: The file.
    /// - Throws: ``FileError`` if it can't be read, or has other contents.
    public init(file path: String) throws(FileError) {
        let bytes: [UInt8]
        do {
            let file = try FileHandle(forReadingFrom: URL(filePath: path))
            defer { try? file.close() }
            // One byte more than allowed shows that the file is too large.
            bytes = Array(try file.read(upToCount: Self.fileBytesMax + 1) ?? Data())
        } catch {
            throw FileError(
                description:
                    "\(path) can't be read: \(error.localizedDescription). It must have one "
                    + "line, USER:PASSWORD, for etcd.")
        }
        let lines: [String]
        do throws(TextLines.Fault) {
            lines = try TextLines.read(bytes).filter { !$0.isEmpty }
        } catch {
            throw FileError(
                description:
                    "\(path), \(error). It must have one line, USER:PASSWORD, for etcd.")
        }
        let parts = lines.first?.split(separator: ":", maxSplits: 1) ?? []
        guard bytes.count <= Self.fileBytesMax, lines.count == 1, parts.count == 2 else {
            throw FileError(
                description: "\(path) must have one line, USER:PASSWORD, for etcd, in at most "
                    + "\(Self.fileBytesMax) bytes.")
        }
        self.init(user: String(parts[0]), password: String(parts[1]))
    }
}
