import ConfluxVocabulary

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Figures of the system about this process and about a folder.
package enum ProcessFigures {
    /// How many bytes of memory are resident; nil if the system does not say.
    package static var residentBytes: UInt64? {
        #if canImport(Darwin)
            var info = mach_task_basic_info()
            var count = mach_msg_type_number_t(
                MemoryLayout<mach_task_basic_info>.size / MemoryLayout<natural_t>.size)
            let result = withUnsafeMutablePointer(to: &info) { pointer in
                pointer.withMemoryRebound(to: integer_t.self, capacity: Int(count)) {
                    task_info(mach_task_self_, task_flavor_t(MACH_TASK_BASIC_INFO), $0, &count)
                }
            }
            return result == KERN_SUCCESS ? info.resident_size : nil
        #else
            // In pages: the total, then the resident pages.
            let descriptor = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { return nil }
            defer { close(descriptor) }
            var bytes = [UInt8](repeating: 0, count: 256)
            let count = read(descriptor, &bytes, bytes.count)
            guard count > 0 else { return nil }
            let words = String(shown: bytes[..<count]).split(separator: " ")
            guard words.count > 1, let pages = UInt64(words[1]) else { return nil }
            return pages * UInt64(getpagesize())
        #endif
    }

    /// How many bytes the files of a folder have; nil if it can't be read.
    package static func fileBytes(inFolder path: String) -> UInt64? {
        guard let folder = opendir(path) else { return nil }
        defer { closedir(folder) }
        var sum: UInt64 = 0
        while let entry = readdir(folder) {
            var status = stat()
            let found = withUnsafePointer(to: &entry.pointee.d_name) { name in
                name.withMemoryRebound(to: CChar.self, capacity: 1) {
                    fstatat(dirfd(folder), $0, &status, AT_SYMLINK_NOFOLLOW) == 0
                }
            }
            // A file may have been removed in the meantime.
            guard found, status.st_mode & S_IFMT == S_IFREG else { continue }
            sum += UInt64(clamping: status.st_size)
        }
        return sum
    }

    /// How many bytes are free on the file system of a folder; nil if the system does not say.
    package static func freeBytes(ofFolder path: String) -> UInt64? {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        return UInt64(status.f_bavail) * UInt64(status.f_frsize)
    }
}
