import Foundation
import Spawning

#if os(Linux)
    /// A small file system.
    struct SmallDisk {
        let path: String
        private let site: Site

        /// Mounts it in a site's folder.
        ///
        /// - Returns: The disk, or nil if this user may not mount.
        static func mount(on site: Site, mebibytes: Int) async throws -> SmallDisk? {
            let disk = SmallDisk(path: site.path("disk"), site: site)
            try FileManager.default.createDirectory(
                atPath: disk.path, withIntermediateDirectories: true)
            let isMounted = try await disk.run(
                "mount", "-t", "tmpfs", "-o", "size=\(mebibytes)m", "tmpfs", disk.path)
            return isMounted ? disk : nil
        }

        private init(path: String, site: Site) {
            (self.path, self.site) = (path, site)
        }

        func resize(mebibytes: Int) async throws {
            let isDone = try await run(
                "mount", "-o", "remount,size=\(mebibytes)m", path)
            guard isDone else { throw Failure("\(path) can't be resized") }
        }

        /// Unmounts it, even if files are open.
        func unmount() async throws {
            guard try await run("umount", "-l", path) else {
                throw Failure("\(path) is left behind")
            }
        }

        private func run(_ command: String...) async throws -> Bool {
            let child = try Child(
                "/bin/sh", ["-c", #""$@""#, "sh"] + command, environment: Tool.environment)
            return try await child.end() == .exited(0)
        }
    }
#endif
