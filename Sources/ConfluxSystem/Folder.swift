import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What programs do with folders.
package enum Folder {
    /// Reads what is in a folder.
    ///
    /// - Parameter path: The folder.
    /// - Returns: The names, in no order. Names that are not UTF-8 are left out.
    /// - Throws: ``SystemFailure``.
    package static func names(in path: String) throws(SystemFailure) -> [String] {
        guard let directory = opendir(path) else { throw SystemFailure(errno, at: path) }
        defer { closedir(directory) }
        var names: [String] = []
        errno = 0
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { try? String(utf8CString: $0) }
            }
            if let name { names.append(name) }
            errno = 0
        }
        guard errno == 0 else { throw SystemFailure(errno, at: path) }
        return names
    }

    /// Makes a folder that only this user may use, and the folders above it, if they are absent.
    ///
    /// - Parameter path: The folder.
    /// - Throws: ``SystemFailure``; `ENOTDIR` if there is a file in its place.
    package static func make(_ path: String) throws(SystemFailure) {
        var status = stat()
        if stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR else { throw SystemFailure(ENOTDIR, at: path) }
            return
        }
        guard errno == ENOENT else { throw SystemFailure(errno, at: path) }
        let parent = parent(of: path)
        if parent != path { try make(parent) }
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw SystemFailure(errno, at: path)
        }
    }

    /// Makes one folder that only this user may use. What is made in a folder of others, as the one for temporary files,
    /// must not make that folder, too.
    ///
    /// - Parameter path: The folder.
    /// - Throws: ``SystemFailure``; `ENOENT` if there is no folder for it, `EEXIST` if it is there.
    package static func makeOne(_ path: String) throws(SystemFailure) {
        guard mkdir(path, 0o700) == 0 else { throw SystemFailure(errno, at: path) }
    }

    /// Removes a folder with everything in it. Links are removed, and not what they lead to.
    ///
    /// - Parameter path: The folder.
    /// - Throws: ``SystemFailure``; then a part of it is left.
    package static func remove(_ path: String) throws(SystemFailure) {
        for name in try names(in: path) where name != "." && name != ".." {
            let inner = "\(path)/\(name)"
            var status = stat()
            guard lstat(inner, &status) == 0 else { throw SystemFailure(errno, at: inner) }
            if status.st_mode & S_IFMT == S_IFDIR {
                try remove(inner)
            } else if unlink(inner) != 0 {
                throw SystemFailure(errno, at: inner)
            }
        }
        guard rmdir(path) == 0 else { throw SystemFailure(errno, at: path) }
    }

    /// Whether a path begins at the root: by its first byte, since for Unicode a mark behind the slash makes it another
    /// character.
    package static func isAbsolute(_ path: String) -> Bool { path.utf8.first == UInt8(ascii: "/") }

    /// The folder that has a file or a folder in it.
    package static func parent(of path: String) -> String {
        var rest = path[...]
        while rest.utf8.count > 1, rest.hasSuffix("/") { rest.removeLast() }
        guard let slash = rest.lastIndex(of: "/") else { return "." }
        return slash == rest.startIndex ? "/" : String(rest[..<slash])
    }
}
