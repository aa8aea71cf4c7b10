import Foundation

/// How connections to etcd are encrypted. Each file is in PEM form.
public struct EtcdSecurity: Sendable, Hashable {
    /// The certificates of the only authorities that are trusted; nil for those that the system trusts.
    public var authorityFile: String?
    /// This program's certificate, if etcd requires one.
    public var certificateFile: String?
    /// The secret key of that certificate, unencrypted; nil if it is in the same file.
    public var keyFile: String?

    /// Makes the settings.
    ///
    /// - Parameters:
    ///   - authorityFile: The certificates of the trusted authorities.
    ///   - certificateFile: This program's certificate.
    ///   - keyFile: Its secret key.
    public init(
        authorityFile: String? = nil, certificateFile: String? = nil, keyFile: String? = nil
    ) {
        self.authorityFile = authorityFile
        self.certificateFile = certificateFile
        self.keyFile = keyFile
    }
}

/// A user of an etcd that has authentication enabled.
public struct EtcdCredentials: Sendable, Hashable {
    /// Why a file of credentials can't be used.
    public struct FileError: Error, CustomStringConvertible {
        /// What happened, and what to do.
        public let description: String
    }

    /// The most bytes of a file of credentials.
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
    /// - Throws: ``FileError`` if it can't be read, or has something else.
    public init(file path: String) throws(FileError) {
        let text: String
        do {
            let file = try FileHandle(forReadingFrom: URL(filePath: path))
            defer { try? file.close() }
            // One byte more than there may be shows that there are too many.
            let bytes = try file.read(upToCount: Self.fileBytesMax + 1) ?? Data()
            text = bytes.count <= Self.fileBytesMax ? String(decoding: bytes, as: UTF8.self) : ""
        } catch {
            throw FileError(
                description:
                    "\(path) can't be read: \(error.localizedDescription). It has one line, "
                    + "USER:PASSWORD, for etcd.")
        }
        let lines = text.split(whereSeparator: \.isNewline)
        let parts = lines.first?.split(separator: ":", maxSplits: 1) ?? []
        guard lines.count == 1, parts.count == 2 else {
            throw FileError(
                description: "\(path) must have one line, USER:PASSWORD, for etcd, in at most "
                    + "\(Self.fileBytesMax) bytes.")
        }
        self.init(user: String(parts[0]), password: String(parts[1]))
    }
}
