extension Rule {
    static let shapes: [Rule] = [names, moduleNames, shadows, lengths, folderSizes]

    static let names = Rule(name: "a name says what a thing is for") { tree in
        let empty: Set = [
            "Util", "Utils", "Utility", "Utilities", "Helper", "Helpers", "Common", "Misc",
        ]
        return ourPaths(in: tree).compactMap { path in
            let bad = path.split(separator: "/").first { part in
                let stem = part.split(separator: ".").first.map(String.init) ?? ""
                return stem.split(separator: "+").contains { word in
                    empty.contains(lastWord(of: String(word)))
                }
            }
            return bad.map {
                Violation(
                    path: path, message: "'\($0)' says nothing; name it after what it is for")
            }
        }
    }

    static let moduleNames = Rule(name: "no type bears its module's name") { tree in
        let modules = tree.folders(in: "Sources")
        let keywords: Set = ["actor", "class", "enum", "protocol", "struct", "typealias"]
        return tree.lines(
            in: "Sources",
            matching: { line in
                let words = line.words
                // `import struct Module.Type` declares nothing.
                guard !words.contains("import") else { return false }
                return zip(words, words.dropFirst()).contains {
                    keywords.contains($0) && modules.contains($1)
                }
            },
            message: "a type with a module's name breaks qualified names; name it otherwise")
    }

    /// The folders of the modules that use the public types of the first one, and that one itself.
    private static let flux = [
        "Sources/Conflux", "Sources/ConfluxNode", "Sources/ConfluxTesting", "Sources/ConfluxWorker",
        "Sources/ConfluxCLI",
    ]

    static let shadows = Rule(name: "no type hides a public one behind its name") { tree in
        let kinds: Set = ["actor", "class", "enum", "protocol", "struct"]
        func declared(_ line: String) -> String? {
            let words = line.words
            guard !words.contains("import") else { return nil }
            return zip(words, words.dropFirst()).first { kinds.contains($0.0) }?.1
        }
        func isPublic(_ line: String) -> Bool {
            line.words.contains("public") || line.words.contains("open")
        }
        let visible = Set(
            tree.swift(in: "Sources/Conflux").flatMap { _, source in
                source.code.filter { $0.first?.isWhitespace == false && isPublic($0) }
                    .compactMap(declared)
            })
        return flux.flatMap { folder in
            tree.lines(
                in: folder,
                matching: { line in
                    !isPublic(line) && declared(line).map(visible.contains) == true
                },
                message:
                    "a public type has this name; who reads on must not mistake one for the other")
        }
    }

    static let lengths = Rule(name: "a file is read in one sitting") { tree in
        tree.swift(in: "Sources", "Tests", "Benchmarks", "Fuzzing", "examples").compactMap {
            path, source in
            let limit = path.hasPrefix("Sources/") ? 400 : 600
            // The text ends with a newline, behind which there is no line.
            let count = source.code.count - (source.code.last?.isEmpty == true ? 1 : 0)
            guard count > limit else { return nil }
            return Violation(
                path: path, message: "\(count) lines; at \(limit) a file is split by role")
        }
    }

    static let folderSizes = Rule(name: "a folder has at most a dozen files") { tree in
        Dictionary(grouping: ourPaths(in: tree)) { path in
            path.split(separator: "/").dropLast().joined(separator: "/")
        }.filter { $0.value.count > 12 }.map { folder, paths in
            Violation(
                path: folder,
                message: "\(paths.count) files; at more than 12 a folder is divided by concept")
        }
    }

    private static func ourPaths(in tree: Tree) -> [String] {
        tree.paths.filter { path in
            ["Sources/", "Tests/", "Benchmarks/", "Fuzzing/Sources/", "examples/", "script/"]
                .contains {
                    path.hasPrefix($0)
                }
        }.sorted()
    }

    /// The last word of a name in camel case: `Utils` of `StringUtils`, `helpers` in capitals.
    private static func lastWord(of name: String) -> String {
        let start = name.lastIndex { $0.isUppercase || $0 == "-" || $0 == "_" } ?? name.startIndex
        let word = name[start...].drop { $0 == "-" || $0 == "_" }
        return word.prefix(1).uppercased() + word.dropFirst()
    }
}
