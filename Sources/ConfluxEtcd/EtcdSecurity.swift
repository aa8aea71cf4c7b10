import ConfluxSystem
import ConfluxVocabulary

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

    /// Checks that the files can be read. libcurl, which reads them for each connection, does not say why it can't.
    ///
    /// - Throws: ``EtcdFileError`` for the first that can't be read.
    public func checkFiles() throws(EtcdFileError) {
        for path in [authorityFile, certificateFile, keyFile].compactMap({ $0 }) {
            do throws(SystemFailure) {
                _ = try InputFile(path).read(upTo: 1)
            } catch {
                throw EtcdFileError(
                    path, error,
                    needs: "It needs certificates or a key, for etcd: write them in PEM form.")
            }
        }
    }
}

/// Why a file with credentials or certificates can't be used.
public struct EtcdFileError: Error, CustomStringConvertible {
    /// What happened, and what to do.
    public let description: String

    init(description: String) { self.description = description }

    init(_ path: String, _ failure: SystemFailure, needs contents: String) {
        description =
            "\(path) can't be read: \(failure.reason(advice: "Give a file that there is.")) \(contents)"
    }
}

/// A user and a password, for an etcd that has authentication enabled.
public struct EtcdCredentials: Sendable, Hashable {
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
    /// - Throws: ``EtcdFileError`` if it can't be read, or has other contents.
    public init(file path: String) throws(EtcdFileError) {
        let bytes: [UInt8]
        do throws(SystemFailure) {
            // One byte more than allowed shows that the file is too large.
            bytes = try InputFile(path).read(upTo: Self.fileBytesMax + 1)
        } catch {
            throw EtcdFileError(
                path, error, needs: "It must have one line, USER:PASSWORD, for etcd.")
        }
        let lines: [String]
        do throws(TextLines.Fault) {
            lines = try TextLines.read(bytes).filter { !$0.isEmpty }
        } catch {
            throw EtcdFileError(
                description:
                    "\(path), \(error). It must have one line, USER:PASSWORD, for etcd.")
        }
        let parts = lines.first?.split(separator: ":", maxSplits: 1) ?? []
        guard bytes.count <= Self.fileBytesMax, lines.count == 1, parts.count == 2 else {
            throw EtcdFileError(
                description: "\(path) must have one line, USER:PASSWORD, for etcd, in at most "
                    + "\(Self.fileBytesMax) bytes.")
        }
        self.init(user: String(parts[0]), password: String(parts[1]))
    }
}
