import Foundation

/// The files of a repository. Those that rules read have their texts, the others only their paths.
struct Tree {
    /// The texts by path, relative to the root, with `/` as the separator.
    let texts: [String: String]
    /// The paths of all files, including those of `texts`.
    let paths: Set<String>
    private let sources: [String: SwiftSource]

    /// A tree in memory.
    init(_ texts: [String: String], others: Set<String> = []) {
        self.texts = texts
        paths = others.union(texts.keys)
        sources = texts.filter { $0.key.hasSuffix(".swift") }.mapValues(SwiftSource.init)
    }

    /// Reads the tree in a folder. Hidden files are left out, except for `.ci` and `.spi.yml`.
    init(at top: URL) throws {
        var texts: [String: String] = [:]
        var others: Set<String> = []
        var open = [""]
        while let folder = open.popLast() {
            let place = top.appending(path: folder)
            for name in try FileManager.default.contentsOfDirectory(atPath: place.path)
            where !name.hasPrefix(".") || [".ci", ".spi.yml"].contains(name) {
                let path = folder.isEmpty ? name : "\(folder)/\(name)"
                let file = place.appending(path: name)
                if try file.resourceValues(forKeys: [.isDirectoryKey]).isDirectory == true {
                    open.append(path)
                } else if Self.isRead(path) {
                    texts[path] = try String(contentsOf: file, encoding: .utf8)
                } else {
                    others.insert(path)
                }
            }
        }
        self.init(texts, others: others)
    }

    /// The repository of this file. It is read once.
    static func ofThisRepository() throws -> Tree { try this.get() }

    private static let this = Result { try Tree(at: top()) }

    /// The folder of this repository.
    static func top() throws -> URL {
        var top = URL(filePath: #filePath)
        while !FileManager.default.fileExists(atPath: top.appending(path: "Package.swift").path) {
            guard top.path != "/" else { throw CocoaError(.fileNoSuchFile) }
            top = top.deletingLastPathComponent()
        }
        return top
    }

    private static func isRead(_ path: String) -> Bool {
        path.hasSuffix(".swift") || path.hasSuffix(".md") || path.hasPrefix("script/")
            || path.hasPrefix(".ci/") || path == ".spi.yml"
    }

    /// The Swift files in one of the folders, in the order of their paths.
    func swift(in folders: String...) -> [(path: String, source: SwiftSource)] {
        sources.filter { source in folders.contains { source.key.hasPrefix($0 + "/") } }
            .sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// The names of the folders that a folder directly contains.
    func folders(in folder: String) -> Set<String> {
        let parts = paths.filter { $0.hasPrefix(folder + "/") }
            .map { $0.dropFirst(folder.count + 1).split(separator: "/") }
        return Set(parts.filter { $0.count > 1 }.map { String($0[0]) })
    }

    /// Whether a path is that of a file, or of a folder that contains a file.
    func holds(_ path: String) -> Bool {
        paths.contains(path) || paths.contains { $0.hasPrefix(path + "/") }
    }
}

/// A place that breaks a rule.
struct Violation: CustomStringConvertible {
    let path: String
    /// The line number, counted from 1; nil for the whole file or folder.
    var line: Int?
    /// What is wrong, and what to do.
    let message: String

    var description: String {
        "\(path)\(line.map { ":\($0)" } ?? ""): \(message)"
    }
}
