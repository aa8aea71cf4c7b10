import Foundation

/// A third-party server, in its own process.
final class PeerServer {
    let place: PeerPlace
    private let process = Process()

    /// The program of a kind; nil if it is not installed.
    static func program(of kind: PeerKind) -> URL? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        return (path.split(separator: ":").map(String.init) + ["/usr/sbin"])
            .map { URL(fileURLWithPath: $0).appendingPathComponent(kind.program) }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    /// Why a kind can't be measured; nil if it can.
    static func obstacle(to kind: PeerKind) throws -> String? {
        guard let program = program(of: kind) else { return "\(kind.program) is not installed" }
        guard kind == .syncedNATS else { return nil }
        // Older ones can't sync each write.
        let process = Process()
        let output = Pipe()
        process.executableURL = program
        process.arguments = ["--version"]
        process.standardOutput = output
        try process.run()
        let text = String(
            decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        let version = text.split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
        return version.lexicographicallyPrecedes([2, 10])
            ? "\(program.path) is too old for sync_interval: always" : nil
    }

    /// Starts a server on a free port, and waits until it answers.
    ///
    /// - Parameters:
    ///   - kind: The kind of server.
    ///   - folder: The folder for its log.
    /// - Throws: ``BenchError`` if it is not installed, or does not answer.
    init(_ kind: PeerKind, folder: String) throws {
        guard let program = Self.program(of: kind) else {
            throw BenchError("\(kind.program) is not installed")
        }
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        place = PeerPlace(kind: kind, port: try Self.freePort())
        process.executableURL = program
        process.arguments = try kind.arguments(port: place.port, folder: folder)
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        do {
            try PeerRoles.prepare(place)
        } catch {
            end()
            throw error
        }
    }

    /// Ends the process, and waits until it has ended.
    func end() {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }

    /// A port of the loopback interface that is free now.
    static func freePort() throws -> Int {
        #if canImport(Glibc)
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
            let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let hasFailed = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) != 0 || getsockname(descriptor, $0, &size) != 0
            }
        }
        guard !hasFailed else {
            throw BenchError("no free port: \(String(cString: strerror(errno)))")
        }
        return Int(UInt16(bigEndian: address.sin_port))
    }
}
