extension ActionCatalog {
    /// Derives the shapes of a type from how it decodes itself: each case is decoded once from values that are
    /// made up, and what it asks for is noted.
    ///
    /// - Parameters:
    ///   - type: The type of actions. An enum whose `Codable` the compiler makes is always understood.
    ///   - bytesMax: The most bytes of the shapes as JSON.
    /// - Returns: nil if the type does not decode itself as such an enum does, or if the shapes take too many
    ///   bytes: then nothing is known.
    package static func derived<Action: Decodable>(
        of type: Action.Type, bytesMax: Int
    ) -> ActionCatalog? {
        let names = ShapeNames((type as? any NamedActions.Type)?.actionNames)
        do {
            // It ends with the question for the keys, and else is of no use.
            _ = try Action(from: ShapeDecoder(.names(names)))
            return nil
        } catch {
            guard !names.found.isEmpty else { return nil }
        }
        var actions: [String: Fields] = [:]
        for name in names.found {
            let notes = ShapeNotes()
            do {
                _ = try Action(from: ShapeDecoder(.action(name, notes)))
                actions[name] = notes.isNested ? .known(notes.fields) : .unknown
            } catch {
                // What made the type give up is not known; what it asks for behind it neither.
                actions[name] = .unknown
            }
        }
        let catalog = ActionCatalog(actions: actions)
        return catalog.json.count <= bytesMax ? catalog : nil
    }
}

/// The names of the cases, as they are found. Confined to one call.
final class ShapeNames {
    /// Those that the type tells itself.
    let told: [String]?
    var found: [String] = []

    init(_ told: [String]?) { self.told = told }
}

/// What a case asks for. Confined to one call.
final class ShapeNotes {
    /// Whether it asked for fields in the way of the compiler's own coding.
    var isNested = false
    var fields: [String: ActionCatalog.Field] = [:]
    /// The fields that were asked for with a question whether they are there.
    var optional: Set<String> = []

    func note(_ key: String, _ kind: ActionCatalog.Kind) {
        // What is read twice, in two ways, takes whatever either takes.
        let isOther = fields[key].map { $0.kind != kind } ?? false
        fields[key] = ActionCatalog.Field(
            kind: isOther ? .any : kind, isOptional: optional.contains(key))
    }
}

/// What one value asks for. Confined to one call.
final class ShapeKind {
    private(set) var kind: ActionCatalog.Kind?

    /// The first question says what the value is.
    func note(_ kind: ActionCatalog.Kind) { self.kind = self.kind ?? kind }
}

/// Why made-up values are of no more use.
enum ShapeEnd: Error {
    /// The names are known.
    case named
    /// The type asks for what can't be made up.
    case notUnderstood
}
