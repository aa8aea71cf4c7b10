import Foundation

/// A copy of the sources with every mistake, each behind an environment variable, so that one build is
/// enough for all of them.
struct PlantedTree {
    let root: URL
    let folder: URL

    /// The repository of this file.
    static var repository: URL {
        URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
    }

    /// Why a mistake can't be planted.
    struct Misfit: Error, CustomStringConvertible {
        let description: String
    }

    /// The sources in a folder, by path.
    static func sources(of root: URL) throws -> [String: String] {
        var found: [String: String] = [:]
        let sources = root.appending(path: "Sources")
        let paths = try FileManager.default.subpathsOfDirectory(atPath: sources.path)
        for path in paths where path.hasSuffix(".swift") {
            found[path] = try String(contentsOf: sources.appending(path: path), encoding: .utf8)
        }
        return found
    }

    /// Plants every mistake.
    ///
    /// - Throws: ``Misfit`` if the code has changed since a mistake was written.
    static func plant(_ bugs: [PlantedBug], in sources: inout [String: String]) throws {
        for (number, bug) in bugs.enumerated() {
            guard let text = sources[bug.file] else {
                throw Misfit(description: "\(bug.name): there is no \(bug.file)")
            }
            let places = try self.places(of: bug.original, in: text)
            guard places.count == 1, let place = places.first else {
                throw Misfit(
                    description:
                        "\(bug.name): its place stands \(places.count) times in \(bug.file)")
            }
            let planted = bug.planted.replacingOccurrences(
                of: "PLANTED", with: "(Planted.active == \(number + 1))")
            let changed = text.replacingCharacters(in: place, with: planted)
            // The vocabulary contains the switch.
            let needsImport =
                !bug.file.hasPrefix("ConfluxVocabulary/")
                && !changed.contains("import ConfluxVocabulary\n")
            sources[bug.file] = (needsImport ? "import ConfluxVocabulary\n" : "") + changed
        }
        sources["ConfluxVocabulary/Planted.swift"] = switchboard
    }

    /// The places of a piece of code, however it is divided into lines.
    private static func places(of code: String, in text: String) throws -> [Range<String.Index>] {
        let words = code.split(whereSeparator: \.isWhitespace)
        let pattern = words.map { NSRegularExpression.escapedPattern(for: String($0)) }
            .joined(separator: "\\s+")
        let expression = try NSRegularExpression(pattern: pattern)
        return expression.matches(in: text, range: NSRange(text.startIndex..., in: text))
            .compactMap { Range($0.range, in: text) }
    }

    /// The mistake that is chosen by the environment, or none.
    private static let switchboard = """
        #if canImport(Darwin)
            import Darwin
        #else
            import Glibc
        #endif

        package enum Planted {
            package static let active = getenv("CONFLUX_PLANTED").map { Int(atoi($0)) } ?? 0
        }

        """

    /// Writes the copy with its own manifest, into a folder that later runs use again, so that only
    /// changes are built.
    func write(_ sources: [String: String]) throws {
        let files = FileManager.default
        try files.createDirectory(at: folder, withIntermediateDirectories: true)
        for (path, text) in sources {
            let file = folder.appending(path: "Sources").appending(path: path)
            try files.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            let former = try? String(contentsOf: file, encoding: .utf8)
            if former != text { try text.write(to: file, atomically: true, encoding: .utf8) }
        }
        for path in try Self.sources(of: folder).keys where sources[path] == nil {
            try files.removeItem(at: folder.appending(path: "Sources").appending(path: path))
        }
        for name in try files.contentsOfDirectory(atPath: root.appending(path: "Sources").path)
        where name.hasPrefix("C") && !name.hasPrefix("Co") {
            try link(root.appending(path: "Sources/\(name)"), as: "Sources/\(name)")
        }
        try link(root.appending(path: "Tests"), as: "Tests")
        try link(root.appending(path: "Package.swift"), as: "Package.swift")
    }

    /// Writes a line for each mistake: its number, the options with which the simulator finds it, and what it is.
    func write(_ bugs: [PlantedBug]) throws {
        let lines = bugs.enumerated().map { number, bug in
            let options = [("--with", bug.fault), ("--world", bug.world), ("--states", bug.states)]
                .compactMap { option, value in value.map { "\(option) \($0)" } }
            let columns = ["\(number + 1)", options.joined(separator: " "), bug.testDescription]
            return columns.joined(separator: "\t") + "\n"
        }
        let file = folder.appending(path: "mistakes")
        try lines.joined().write(to: file, atomically: true, encoding: .utf8)
    }

    private func link(_ target: URL, as name: String) throws {
        let place = folder.appending(path: name)
        try? FileManager.default.removeItem(at: place)
        try FileManager.default.createSymbolicLink(at: place, withDestinationURL: target)
    }
}
