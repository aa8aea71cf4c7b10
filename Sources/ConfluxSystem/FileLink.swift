#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What programs do with symbolic links.
package enum FileLink {
    /// How many links in a row the system follows.
    private static let linksMax = 40

    /// Follows a path that is a symbolic link, as the system does. The place where it ends may be empty.
    ///
    /// - Parameter path: The path, without a zero byte.
    /// - Returns: The path of what is no link; the same one if it is none.
    /// - Throws: ``SystemFailure``; `ELOOP` for links in a circle.
    package static func end(of path: String) throws(SystemFailure) -> String {
        var end = path
        for _ in 0...linksMax {
            var status = stat()
            guard lstat(end, &status) == 0, status.st_mode & S_IFMT == S_IFLNK else { return end }
            let target = try target(of: end)
            end = Folder.isAbsolute(target) ? target : "\(Folder.parent(of: end))/\(target)"
        }
        throw SystemFailure(ELOOP, at: path)
    }

    private static func target(of link: String) throws(SystemFailure) -> String {
        var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(link, &bytes, bytes.count)
        guard count >= 0 else { throw SystemFailure(errno, at: link) }
        guard count < bytes.count else { throw SystemFailure(ENAMETOOLONG, at: link) }
        let units = bytes.prefix(count).map { UInt8(bitPattern: $0) }
        guard let text = String(validating: units, as: UTF8.self) else {
            throw SystemFailure(EILSEQ, at: link)
        }
        return text
    }
}
