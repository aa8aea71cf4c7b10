extension Rule {
    static let imports: [Rule] = [layering, pureLayers]

    /// Which of our modules a target may import. A new target gets its line here when it is made, and
    /// with it a place in the architecture.
    private static let allowed: [String: Set<String>] = [
        "ConfluxVocabulary": [],
        "ConfluxSystem": ["ConfluxVocabulary"],
        "ConfluxThreads": [],
        "ConfluxHashing": ["ConfluxVocabulary", "CSodium"],
        "ConfluxProtocol": ["ConfluxVocabulary", "ConfluxHashing"],
        "ConfluxArguments": [],
        "ConfluxExpansion": [],
        "ConfluxMacros": ["ConfluxExpansion"],
        "ConfluxCoding": ["ConfluxVocabulary"],
        "Conflux": ["ConfluxVocabulary", "ConfluxSystem", "ConfluxThreads", "ConfluxCoding"],
        "ConfluxZeroMQ": [
            "ConfluxVocabulary", "ConfluxSystem", "ConfluxProtocol", "CSockets", "CSodium",
        ],
        "ConfluxLog": [
            "ConfluxVocabulary", "ConfluxSystem", "ConfluxHashing", "ConfluxProtocol", "CSQLite",
        ],
        "ConfluxEtcd": [
            "ConfluxVocabulary", "ConfluxSystem", "ConfluxThreads", "ConfluxLog", "CCurl",
        ],
        "ConfluxSequencer": [
            "ConfluxVocabulary", "ConfluxHashing", "ConfluxThreads", "ConfluxProtocol",
            "ConfluxLog",
            "ConfluxZeroMQ",
        ],
        "ConfluxNode": [
            "ConfluxVocabulary", "ConfluxSystem", "ConfluxHashing", "ConfluxProtocol",
            "ConfluxZeroMQ", "Conflux",
        ],
        "ConfluxTesting": [
            "ConfluxVocabulary", "ConfluxSystem", "ConfluxThreads", "Conflux", "ConfluxNode",
            "Testing", "XCTest",
        ],
        "ConfluxBuiltins": ["ConfluxVocabulary", "Conflux", "ConfluxNode"],
        "ConfluxMonitoring": ["ConfluxVocabulary", "ConfluxSystem", "CMicroHTTPD"],
        "ConfluxWorker": [
            "ConfluxVocabulary", "ConfluxSystem", "ConfluxThreads", "ConfluxProtocol",
            "ConfluxArguments", "Conflux",
            "ConfluxMonitoring", "ConfluxNode",
        ],
        "ConfluxGateway": [
            "ConfluxVocabulary", "ConfluxSystem", "ConfluxHashing", "ConfluxProtocol",
            "ConfluxArguments", "Conflux", "ConfluxZeroMQ", "ConfluxSequencer",
            "ConfluxMonitoring", "ConfluxNode", "ConfluxWorker", "CConsolePage", "CZeroMQ",
        ],
        "ConfluxSimulation": [
            "ConfluxVocabulary", "ConfluxHashing", "ConfluxProtocol", "Conflux", "ConfluxEtcd",
            "ConfluxLog",
            "ConfluxZeroMQ", "ConfluxSequencer", "ConfluxNode",
        ],
        "ConfluxSimulate": [
            "ConfluxVocabulary", "ConfluxSystem", "Conflux", "ConfluxArguments",
            "ConfluxSimulation",
        ],
        "ConfluxCLI": [
            "ConfluxVocabulary", "ConfluxSystem", "ConfluxHashing", "ConfluxProtocol",
            "ConfluxArguments", "Conflux",
            "ConfluxEtcd", "ConfluxLog", "ConfluxZeroMQ", "ConfluxSequencer", "ConfluxNode",
            "ConfluxBuiltins",
            "ConfluxGateway", "ConfluxMonitoring", "ConfluxWorker",
        ],
    ]

    /// The targets that import nothing else at all, so that they are the same on every platform,
    /// and a simulation can run them.
    private static let pure: Set<String> = [
        "ConfluxVocabulary", "ConfluxHashing", "ConfluxProtocol", "ConfluxArguments",
    ]

    /// The modules of the toolchain.
    private static let toolchain: Set<String> = [
        "Darwin", "Dispatch", "Foundation", "FoundationEssentials", "Glibc", "Musl",
        "Observation", "Synchronization",
    ]

    static let layering = Rule(name: "a target imports only what stands below it") { tree in
        let ours = tree.folders(in: "Sources")
        return tree.swift(in: "Sources").flatMap { path, source -> [Violation] in
            let target = targetName(of: path)
            guard let allowed = allowed[target] else {
                return [
                    Violation(
                        path: path,
                        message: "\(target) has no place in the architecture; say in "
                            + "ImportRules.swift what it may import")
                ]
            }
            return modules(importedBy: source).compactMap { line, module in
                if allowed.contains(module) || toolchain.contains(module) { return nil }
                let advice =
                    ours.contains(module)
                    ? "move the code to where it belongs, or what it needs further down"
                    : "nothing from outside the toolchain is used"
                return Violation(
                    path: path, line: line, message: "\(target) may not import \(module); \(advice)"
                )
            }
        }
    }

    static let pureLayers = Rule(name: "the pure layers import nothing from the platform") { tree in
        tree.swift(in: "Sources").filter { pure.contains(targetName(of: $0.path)) }.flatMap {
            path, source in
            modules(importedBy: source).filter { toolchain.contains($0.module) }.map {
                line, module in
                Violation(
                    path: path, line: line,
                    message:
                        "\(targetName(of: path)) is pure and may not import \(module); pass in "
                        + "what is needed as a value")
            }
        }
    }

    /// The second part of a path, which is the target's folder.
    private static func targetName(of path: String) -> String {
        let parts = path.split(separator: "/")
        return parts.count > 1 ? String(parts[1]) : path
    }

    /// The modules that a file imports, with the line numbers.
    private static func modules(importedBy source: SwiftSource) -> [(line: Int, module: String)] {
        let kinds: Set = [
            "actor", "class", "enum", "func", "let", "protocol", "struct", "typealias", "var",
        ]
        let levels: Set = ["fileprivate", "internal", "package", "private", "public"]
        return source.code.enumerated().flatMap { offset, line in
            line.split(separator: ";").compactMap { statement in
                let words = String(statement).words
                guard let place = words.firstIndex(of: "import"),
                    statement.drop(while: \.isWhitespace).hasPrefix("@")
                        || words[..<place].allSatisfy(levels.contains)
                else { return nil }
                let module = words[(place + 1)...].drop { kinds.contains($0) }.first
                return module.map { (offset + 1, $0) }
            }
        }
    }
}
