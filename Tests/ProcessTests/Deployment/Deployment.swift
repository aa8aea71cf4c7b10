import Foundation
import Testing

/// The files in `deploy/`, and the programs on this machine that check them.
enum Deployment {
    /// The root of the repository.
    static let top: URL = {
        var top = URL(filePath: #filePath)
        while top.path != "/", !isFile(top.appending(path: "Package.swift").path) {
            top = top.deletingLastPathComponent()
        }
        return top
    }()

    static func path(_ name: String) -> String { top.appending(path: name).path }

    static func text(_ name: String) throws -> String {
        try String(contentsOfFile: path(name), encoding: .utf8)
    }

    static func isFile(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

    /// The files in a folder of the repository, relative to the root.
    static func files(in folder: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: path(folder)).map { "\(folder)/\($0)" }
            .filter { try !top.appending(path: $0).isDirectory }.sorted()
    }

    /// The path of a program on this machine; nil if it isn't installed.
    static func program(_ name: String) -> String? {
        let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
        return (folders.map(String.init) + ["/usr/sbin", "/sbin"]).map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    static func has(_ programs: String...) -> Bool {
        programs.allSatisfy { program($0) != nil }
    }

    /// Runs a program of this machine, or of the repository, to its end.
    static func run(
        _ name: String, _ arguments: String..., variables: [String: String] = [:]
    ) async throws -> Tool.Outcome {
        let executable = name.hasPrefix("/") ? name : try #require(program(name))
        return try await Tool.outcome(
            of: try Tool.start(arguments, program: executable, variables: variables),
            within: .seconds(300))
    }

    /// The version that the source code states.
    static func version() throws -> String {
        let source = try text("Sources/ConfluxVocabulary/ConfluxRelease.swift")
        let match = try #require(source.firstMatch(of: /static let version = "(.+)"/))
        return String(match.1)
    }
}

extension URL {
    fileprivate var isDirectory: Bool {
        get throws { try resourceValues(forKeys: [.isDirectoryKey]).isDirectory == true }
    }
}
