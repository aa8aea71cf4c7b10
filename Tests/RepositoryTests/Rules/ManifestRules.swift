/// What `Package.swift` and `.spi.yml` say to those who use the package.
extension Rule {
    static let manifest: [Rule] = [withoutLibraries, withoutUnsafeFlags, indexed]

    /// A target of `Package.swift`.
    private struct Target {
        let name: String
        let isLibraryOfSystem: Bool
        let dependencies: [String]
    }

    private static func targets(of manifest: String) -> [Target] {
        let form = /\.(target|macro|executableTarget|systemLibrary)\(\s*name: "(\w+)"/
        let starts = manifest.matches(of: form)
        return starts.indices.map { index in
            let start = starts[index]
            let end =
                index + 1 < starts.count
                ? starts[index + 1].range.lowerBound : manifest.endIndex
            let text = manifest[start.range.lowerBound..<end]
            let list = text.firstMatch(of: /dependencies: \[([^\]]*)\]/)?.1 ?? ""
            return Target(
                name: String(start.2), isLibraryOfSystem: start.1 == "systemLibrary",
                dependencies: list.matches(of: /"(\w+)"/).map { String($0.1) })
        }
    }

    static let withoutLibraries = Rule(name: "the product Conflux needs no library of the system") {
        tree in
        let targets = targets(of: tree.texts["Package.swift"] ?? "")
        let byName = Dictionary(targets.map { ($0.name, $0) }) { first, _ in first }
        guard byName["Conflux"] != nil else {
            return [Violation(path: "Package.swift", message: "there is no target Conflux")]
        }
        var found: Set<String> = []
        var open = ["Conflux"]
        while let name = open.popLast() {
            guard found.insert(name).inserted else { continue }
            open += byName[name]?.dependencies ?? []
        }
        return targets.filter { $0.isLibraryOfSystem && found.contains($0.name) }.map {
            Violation(
                path: "Package.swift",
                message: "Conflux needs \($0.name); put what needs it into a target above Conflux")
        }
    }

    static let withoutUnsafeFlags = Rule(name: "no target has flags that forbid its use") { tree in
        (tree.texts["Package.swift"] ?? "").contains("unsafeFlags")
            ? [
                Violation(
                    path: "Package.swift",
                    message: "a package with unsafeFlags can't be used by others at a version")
            ] : []
    }

    static let indexed = Rule(
        name: "the Swift Package Index gets the documentation of each product"
    ) {
        tree in
        let products = (tree.texts["Package.swift"] ?? "").matches(of: /\.library\(name: "(\w+)"/)
        let listed = (tree.texts[".spi.yml"] ?? "").matches(of: /- (\w+)/).map(\.1)
        return products.map(\.1).filter { !listed.contains($0) }.map {
            Violation(path: ".spi.yml", message: "documentation_targets lacks \($0)")
        }
    }
}
