import ConfluxZeroMQ
import Foundation
import Testing

/// Sockets that have paths.
struct LocalSocketTests {
    private func withFolder(_ body: (String) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("conflux-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder.path)
    }

    private func router(at path: String) throws -> RouterSocket {
        let router = try RouterSocket()
        _ = try router.bind(Endpoint("ipc://\(path)"))
        return router
    }

    private func isThere(_ path: String) -> Bool {
        FileManager.default.fileExists(atPath: path)
    }

    @Test func `a path with a listener is in use, and an abandoned one is taken over`()
        throws
    {
        try withFolder { folder in
            let path = "\(folder)/socket"
            let first = try router(at: path)
            let error = #expect(throws: ZeroMQError.self) { _ = try router(at: path) }
            #expect(error?.code == .addressInUse, "\(String(describing: error))")
            #expect(isThere(path))
            // As a killed process leaves it: the path exists, but nobody listens.
            try FileManager.default.moveItem(atPath: path, toPath: "\(folder)/kept")
            first.close()
            try FileManager.default.moveItem(atPath: "\(folder)/kept", toPath: path)
            let second = try router(at: path)
            second.close()
            #expect(!isThere(path))
        }
    }

    @Test func `a file that is not a socket is kept`() throws {
        try withFolder { folder in
            let path = "\(folder)/file"
            try Data("precious".utf8).write(to: URL(fileURLWithPath: path))
            let error = #expect(throws: ZeroMQError.self) { _ = try router(at: path) }
            #expect(error?.code == .addressInUse, "\(String(describing: error))")
            #expect(FileManager.default.contents(atPath: path) == Data("precious".utf8))
        }
    }

    @Test func `a socket that ends leaves its path to its successor`() throws {
        try withFolder { folder in
            let path = "\(folder)/socket"
            let first = try router(at: path)
            try FileManager.default.removeItem(atPath: path)
            let second = try router(at: path)
            first.close()
            #expect(isThere(path))
            second.close()
            #expect(!isThere(path))
        }
    }
}
