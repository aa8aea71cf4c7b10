import Foundation

/// The links of documents in a folder to files.
struct InstalledLinks {
    /// How many there are.
    private(set) var count = 0
    /// Those that lead nowhere, each after the name of its document.
    private(set) var broken: [String] = []

    init(in folder: String) throws {
        for name in try FileManager.default.subpathsOfDirectory(atPath: folder).sorted()
        where name.hasSuffix(".md") {
            let file = URL(filePath: folder).appending(path: name)
            let text = try String(contentsOf: file, encoding: .utf8)
            for match in text.matches(of: /\]\(([^()\s#]+)(?:#[^()\s]*)?\)/)
            where match.1.prefixMatch(of: /[a-z]+:/) == nil {
                count += 1
                let target = file.deletingLastPathComponent().appending(path: String(match.1))
                if !Deployment.isFile(target.standardizedFileURL.path) {
                    broken.append("\(name): \(match.1)")
                }
            }
        }
    }
}
