#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

extension SystemFailure {
    /// Why this user can't open a file; nil if the user can, or there is no file.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - mode: What the user wants to do with it: `R_OK`, `W_OK`, or both.
    package init?(opening path: String, for mode: Int32) {
        var status = stat()
        if stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
            self.init(EISDIR, at: path)
        } else {
            guard faccessat(AT_FDCWD, path, mode, AT_EACCESS) != 0, errno != ENOENT else {
                return nil
            }
            self.init(errno, at: path)
        }
    }
}
