import Conflux

/// One JSON document, changed at JSON pointers: the state `document`.
///
/// At first it is `{}`. In a pointer (RFC 6901), positions in an array count from 0. The position `-`,
/// or the array's count, means its end, for a new element. All actions except ``Action/remove(at:)``
/// create what is missing on the path: they add members to objects, and one element to the end of an
/// array. Below a new element, they create objects. An action that does not fit the document is refused
/// before anything has changed.
public struct Document: Model {
    /// `document`.
    public static let name = "document"

    /// What can happen to a document.
    public enum Action: Codable, Hashable, Sendable, NamedActions {
        /// Puts a value at a place. It replaces the former value.
        case set(at: JSONPointer, value: JSONValue)
        /// Applies a merge patch (RFC 7386) to the value at a place. If there is none, it is applied to an
        /// empty object.
        case merge(at: JSONPointer, value: JSONValue)
        /// Removes the value at a place. Later elements of an array move up. It is refused if there is no
        /// value, and for the whole document.
        case remove(at: JSONPointer)
        /// Adds to the number at a place, or to 0 if there is none. The sum of two whole numbers is a whole
        /// number; with a fraction, it is a fraction. It is refused if the sum does not fit 64 bits, or if
        /// the whole number would lose digits.
        case increment(at: JSONPointer, by: JSONNumber)
        /// Adds an element to the end of the array at a place, or to an empty array if there is none.
        case append(at: JSONPointer, value: JSONValue)

        /// The names in JSON.
        public static var actionNames: [String] {
            ["append", "increment", "merge", "remove", "set"]
        }
    }

    /// The document.
    public private(set) var root: JSONValue = [:]

    /// Makes the document `{}`.
    public init() {}

    /// Decodes a document from its own JSON.
    ///
    /// - Throws: The decoder's error.
    public init(from decoder: any Decoder) throws {
        root = try decoder.singleValueContainer().decode(JSONValue.self)
    }

    /// Encodes the document as itself.
    ///
    /// - Throws: The encoder's error.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(root)
    }

    /// Refuses an action that does not fit the document.
    ///
    /// - Parameters:
    ///   - action: What is to happen.
    ///   - context: Not used.
    /// - Throws: ``DocumentRefusal``.
    public func check(_ action: Action, _ context: ActionContext) throws {
        switch action {
        case .set(let at, let value), .merge(let at, let value):
            _ = try self.value(at)
            try checkDepth(at, value.depth)
        case .remove(let at):
            try checkRemoval(at)
        case .increment(let at, let amount):
            try checkDepth(at, 0)
            try checkIncrement(at, amount)
        case .append(let at, let value):
            try checkDepth(at, value.depth + 1)
            if let present = try self.value(at), present.array == nil {
                throw DocumentRefusal(
                    .doesNotFit,
                    "\"\(at)\" is \(present.kindInWords): expected an array to append to")
            }
        }
    }

    /// Changes the document.
    ///
    /// - Parameters:
    ///   - action: What happens. It has passed the check.
    ///   - context: Not used.
    public mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .set(let at, let value):
            root.update(at: at.tokens[...]) { place, _ in place = value }
        case .merge(let at, let patch):
            root.update(at: at.tokens[...]) { place, _ in place.merge(patch: patch) }
        case .remove(let at):
            root.remove(at: at.tokens[...])
        case .increment(let at, let amount):
            root.update(at: at.tokens[...]) { place, isNew in
                let present = isNew ? 0 : JSONNumber(place)
                if let sum = present?.adding(amount) { place = sum.value }
            }
        case .append(let at, let value):
            root.update(at: at.tokens[...]) { place, isNew in
                if isNew { place = [] }
                place.append(value)
            }
        }
    }

    // MARK: Checks

    private func value(_ at: JSONPointer) throws -> JSONValue? {
        do {
            return try root.place(at: at)
        } catch {
            throw DocumentRefusal(.doesNotFit, error.message)
        }
    }

    private func checkRemoval(_ at: JSONPointer) throws {
        guard !at.tokens.isEmpty else {
            throw DocumentRefusal(
                .doesNotFit, "the whole document can't be removed: set \"\" to {} instead")
        }
        guard root[at] != nil else {
            throw DocumentRefusal(.nothingThere, "nothing is at \"\(at)\"")
        }
    }

    private func checkIncrement(_ at: JSONPointer, _ amount: JSONNumber) throws {
        let present: JSONNumber
        if let value = try value(at) {
            guard let number = JSONNumber(value) else {
                throw DocumentRefusal(
                    .doesNotFit,
                    "\"\(at)\" is \(value.kindInWords): expected a number to increment")
            }
            present = number
        } else {
            present = 0
        }
        guard present.adding(amount) != nil else {
            throw DocumentRefusal(
                .overflow,
                "adding \(amount) to the \(present) at \"\(at)\" gives a number that does not fit "
                    + "64 bits, or loses digits")
        }
    }

    /// Refuses a document that would be deeper than our own parser reads.
    private func checkDepth(_ at: JSONPointer, _ depth: Int) throws {
        guard at.tokens.count + depth <= CodingLimits.depthMax else {
            throw DocumentRefusal(
                .tooDeep,
                "the document would have more than \(CodingLimits.depthMax) levels of arrays and "
                    + "objects")
        }
    }
}

/// Why a document refuses an action.
public struct DocumentRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of refusal: stable, so that a program can decide by it.
    public enum Code: String, Hashable, Sendable {
        /// The value there has another type, or a position lies beyond the end of an array.
        case doesNotFit
        /// There is nothing to remove.
        case nothingThere
        /// A sum doesn't fit 64 bits, or would lose digits.
        case overflow
        /// The document would be nested too deeply.
        case tooDeep
    }

    /// The kind of refusal.
    public let code: Code
    /// What does not fit, and where.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
