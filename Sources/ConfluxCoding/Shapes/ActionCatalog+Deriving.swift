extension ActionCatalog {
    /// Derives the shapes of a type from how it decodes itself: it decodes each case once from made-up
    /// values, and notes what the case asks for.
    ///
    /// - Parameters:
    ///   - type: The type of actions. An enum whose `Codable` conformance is synthesised is always
    ///     understood.
    ///   - bytesMax: The most bytes that the shapes may take.
    /// - Returns: nil if the type does not decode itself like such an enum, or if the shapes take too many
    ///   bytes: then nothing is known.
    package static func derived<Action: Decodable>(
        of type: Action.Type, bytesMax: Int
    ) -> ActionCatalog? {
        let names = ShapeNames((type as? any NamedActions.Type)?.actionNames)
        do {
            // It ends by throwing when the keys are asked for. A decoded action would be useless.
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
                // It is unknown why the type gave up, and what it would have asked for next.
                actions[name] = .unknown
            }
        }
        let catalog = ActionCatalog(actions: actions)
        return catalog.json.count <= bytesMax ? catalog : nil
    }
}

/// The names of the cases that were found. Confined to one call.
final class ShapeNames {
    /// The names that the type lists itself.
    let told: [String]?
    var found: [String] = []

    init(_ told: [String]?) { self.told = told }
}

/// The fields that a case asks for. Confined to one call.
final class ShapeNotes {
    /// Whether it asked for fields the way synthesised coding does.
    var isNested = false
    var fields: [String: ActionCatalog.Field] = [:]
    /// The fields whose presence was checked first.
    var optional: Set<String> = []

    func note(_ key: String, _ kind: ActionCatalog.Kind) {
        // A field that is read as two kinds takes either.
        let isOther = fields[key].map { $0.kind != kind } ?? false
        fields[key] = ActionCatalog.Field(
            kind: isOther ? .any : kind, isOptional: optional.contains(key))
    }
}

/// The kind of value that is asked for. Confined to one call.
final class ShapeKind {
    private(set) var kind: ActionCatalog.Kind?

    /// The first request determines the kind.
    func note(_ kind: ActionCatalog.Kind) { self.kind = self.kind ?? kind }
}

/// Why decoding from made-up values ended.
enum ShapeEnd: Error {
    /// The names are known.
    case named
    /// The type asks for a value that can't be made up.
    case notUnderstood
}
