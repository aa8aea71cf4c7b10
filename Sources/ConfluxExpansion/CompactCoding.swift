/// The source of an extension by which a type adopts `CompactCodable`: it writes what `Codable` writes.
struct CompactCoding {
    private let declaration: Declaration
    private let type: String

    init(of declaration: Declaration, named type: String) {
        (self.declaration, self.type) = (declaration, type)
    }

    /// Whether the functions stand in the type itself. In an enum they name the types of associated values, which an
    /// extension might not find. In a struct they must not, or it would lose its memberwise initialiser.
    private var isWithinType: Bool {
        if case .cases = declaration.content { true } else { false }
    }

    /// What stands in the type.
    ///
    /// - Returns: Its source.
    /// - Throws: `ExpansionFailure` if there is nothing to write.
    func members() throws -> String { isWithinType ? try functions() : "" }

    /// The extension.
    ///
    /// - Parameter conforms: Whether the type states the conformance itself.
    /// - Returns: Its source.
    /// - Throws: `ExpansionFailure` if there is nothing to write.
    func extensions(conforms: Bool) throws -> String {
        if isWithinType {
            // So that the compiler gets the same error for both parts.
            _ = try functions()
            return conforms ? "" : "extension \(type): CompactCodable {}"
        }
        return "extension \(type)\(conforms ? "" : ": CompactCodable") {\n\(try functions())\n}"
    }

    private func functions() throws -> String {
        let (write, read) =
            switch declaration.content {
            case .record(let fields): record(fields)
            case .rawValues(let raw): rawValues(raw)
            case .cases(let cases): try enumeration(cases)
            }
        let lines =
            function("func write(to output: inout CompactOutput)", write)
            + function("init(from input: inout CompactInput) throws(CompactMismatch)", read)
        return lines.joined(separator: "\n")
    }

    private func function(_ signature: String, _ body: [String]) -> [String] {
        ["    \(declaration.access)\(signature) {"] + body.map { "        \($0)" } + ["    }"]
    }

    /// A field, with the name of the variable that holds it.
    private typealias Variable = (name: String, field: Declaration.Field)

    /// The fields in the order of their keys' bytes, in which canonical values have them.
    private func sorted(_ variables: [Variable]) -> [Variable] {
        variables.sorted { $0.field.key.utf8.lexicographicallyPrecedes($1.field.key.utf8) }
    }

    /// How many fields there are: an expression.
    private func count(_ variables: [Variable]) -> String {
        let required = variables.filter { !$0.field.isOptional }.count
        let optional = variables.filter(\.field.isOptional).map { "(\($0.name) == nil ? 0 : 1)" }
        return (["\(required)"] + optional).joined(separator: " + ")
    }

    private func writes(_ variables: [Variable]) -> [String] {
        sorted(variables).map { name, field in
            let call = "output.encode(\(name), forKey: \"\(field.key)\")"
            return field.isOptional ? "if let \(name) = \(name) { \(call) }" : call
        }
    }

    /// How a field is read: an expression.
    private func read(_ field: Declaration.Field) -> String {
        field.isOptional
            ? "input.decodeIfPresent(forKey: \"\(field.key)\", of: &optionals)"
            : "input.decode(forKey: \"\(field.key)\")"
    }

    // MARK: A struct

    private func record(_ fields: [Declaration.Field]) -> (write: [String], read: [String]) {
        let own = fields.map { (name: "self.\($0.label ?? "")", field: $0) }
        let required = fields.filter { !$0.isOptional }.count
        let write =
            ["output.beginObject(fields: \(count(own)))"]
            + sorted(own).map { name, field in
                let call =
                    "output.encode(\(field.isOptional ? "value" : name), forKey: \"\(field.key)\")"
                return field.isOptional ? "if let value = \(name) { \(call) }" : call
            }
        var read: [String]
        if required == fields.count {
            read = ["try input.beginObject(fields: \(required))"]
        } else {
            read = ["var optionals = try input.beginObject(fields: \(required)...\(fields.count))"]
        }
        read += sorted(own).map { "\($0.name) = try \(self.read($0.field))" }
        if required != fields.count { read += Self.checks }
        return (write, read)
    }

    private static let checks = ["guard optionals == 0 else { throw CompactMismatch() }"]

    // MARK: An enum

    private func rawValues(_ raw: String) -> (write: [String], read: [String]) {
        (
            ["rawValue.write(to: &output)"],
            [
                "guard let value = Self(rawValue: try \(raw)(from: &input)) else { throw CompactMismatch() }",
                "self = value",
            ]
        )
    }

    private func enumeration(
        _ cases: [Declaration.Case]
    ) throws -> (write: [String], read: [String]) {
        guard !cases.isEmpty else {
            throw ExpansionFailure(
                "@CompactAction needs an enum with cases: a value of this one can't exist.")
        }
        var write = ["switch self {"]
        var read: [String] = []
        for each in cases {
            let variables = each.fields.enumerated().map {
                (name: "value\($0.offset)", field: $0.element)
            }
            let names = variables.map { "let \($0.name)" }.joined(separator: ", ")
            write.append(
                variables.isEmpty
                    ? "case .\(each.name.text):" : "case .\(each.name.text)(\(names)):")
            write.append("    output.beginCase(\"\(each.name.name)\", fields: \(count(variables)))")
            write += writes(variables).map { "    \($0)" }
            read += self.read(each, variables)
        }
        return (write + ["}"], read + ["throw CompactMismatch()"])
    }

    private func read(_ each: Declaration.Case, _ variables: [Variable]) -> [String] {
        let required = variables.filter { !$0.field.isOptional }.count
        let name = each.name.name
        let isFixed = required == variables.count
        var lines = [
            isFixed
                ? "if input.isCase(\"\(name)\", fields: \(required)) {"
                : "if var optionals = input.beginCase(\"\(name)\", fields: \(required)...\(variables.count)) {"
        ]
        let values = variables.map { variable in
            (variable.field.label.map { "\($0): " } ?? "") + variable.name
        }
        lines += sorted(variables).map {
            "    let \($0.name): \($0.field.type) = try \(self.read($0.field))"
        }
        if !isFixed { lines += Self.checks.map { "    \($0)" } }
        lines.append(
            variables.isEmpty
                ? "    self = .\(each.name.text)"
                : "    self = .\(each.name.text)(\(values.joined(separator: ", ")))")
        lines += ["    return", "}"]
        return lines
    }
}
