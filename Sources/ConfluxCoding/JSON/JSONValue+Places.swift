/// Why there is nothing at a place in a JSON value, and nothing can be put there.
package struct JSONPlaceFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, and where.
    package let message: String

    /// What is wrong, and where.
    package var description: String { message }
}

extension JSONValue {
    /// The value at a place; nil if there is none.
    ///
    /// - Parameter pointer: The place; the empty pointer means the whole value.
    public subscript(pointer: JSONPointer) -> JSONValue? { (try? place(at: pointer)) ?? nil }

    /// The value at a place, or nil if the place is free.
    ///
    /// A free place is a member that an object lacks, the end of an array (`-` or its count), or any place
    /// inside a free place.
    ///
    /// - Parameter pointer: The place.
    /// - Returns: The value.
    /// - Throws: Why nothing can be put there.
    package func place(at pointer: JSONPointer) throws(JSONPlaceFailure) -> JSONValue? {
        var value = self
        for (depth, token) in pointer.tokens.enumerated() {
            switch value {
            case .object(let members):
                guard let member = members[token] else { return nil }
                value = member
            case .array(let elements):
                if token == "-" { return nil }
                guard let position = JSONPointer.position(token), position <= elements.count
                else {
                    let parent = JSONPointer(tokens: Array(pointer.tokens[..<depth]))
                    throw JSONPlaceFailure(
                        message: """
                            "\(parent)" is an array of \(elements.count): expected a position \
                            from 0 to \(elements.count), or "-" for its end, found "\(token)"
                            """)
                }
                if position == elements.count { return nil }
                value = elements[position]
            default:
                let parent = JSONPointer(tokens: Array(pointer.tokens[..<depth]))
                throw JSONPlaceFailure(
                    message: """
                        "\(parent)" is \(value.kindInWords): expected an object or an array, to \
                        find "\(token)" in it
                        """)
            }
        }
        return value
    }

    /// Changes the value at a place, in place. Missing parents become objects.
    ///
    /// Does nothing if ``place(at:)`` throws.
    ///
    /// - Parameters:
    ///   - tokens: The place.
    ///   - isNew: Whether this value itself is new, so that it becomes an object if needed.
    ///   - change: Gets the value, and whether it is new; a new value is null.
    package mutating func update(
        at tokens: ArraySlice<String>, isNew: Bool = false,
        _ change: (inout JSONValue, _ isNew: Bool) -> Void
    ) {
        guard let token = tokens.first else {
            change(&self, isNew)
            return
        }
        let rest = tokens.dropFirst()
        if isNew { self = .object(JSONObject()) }
        switch shape {
        case .object:
            var members = takeMembers()
            members.update(token) { $0.update(at: rest, isNew: $1, change) }
            self = .object(members)
        case .array:
            var elements = takeElements()
            let position = token == "-" ? elements.count : JSONPointer.position(token)
            if position == elements.count {
                var element = JSONValue.null
                element.update(at: rest, isNew: true, change)
                elements.append(element)
            } else if let position, position < elements.count {
                elements[position].update(at: rest, change)
            }
            self = .array(elements)
        case .scalar: return
        }
    }

    /// Removes the value at a place. Does nothing if there is none, or for the whole value.
    package mutating func remove(at tokens: ArraySlice<String>) {
        guard let token = tokens.last, self[JSONPointer(tokens: Array(tokens))] != nil else {
            return
        }
        update(at: tokens.dropLast()) { parent, _ in
            switch parent.shape {
            case .object:
                var members = parent.takeMembers()
                members.remove(token)
                parent = .object(members)
            case .array:
                var elements = parent.takeElements()
                if let position = JSONPointer.position(token) { elements.remove(at: position) }
                parent = .array(elements)
            case .scalar: return
            }
        }
    }

    /// Adds an element to an array, in place. Does nothing to any other value.
    package mutating func append(_ element: JSONValue) {
        guard shape == .array else { return }
        var elements = takeElements()
        elements.append(element)
        self = .array(elements)
    }

    // A value that is taken out has a single owner, unless it is shared, so it is changed without a copy. A
    // `switch self` around the change would keep a second reference meanwhile, optimised or not. `Shape` has
    // no payload, so it keeps none.

    private enum Shape { case array, object, scalar }

    private var shape: Shape {
        switch self {
        case .array: .array
        case .object: .object
        default: .scalar
        }
    }

    /// Takes out an object's members and leaves null; no members for any other value.
    private mutating func takeMembers() -> JSONObject {
        let members = object
        self = .null
        return members ?? JSONObject()
    }

    /// Takes out an array's elements and leaves null; no elements for any other value.
    private mutating func takeElements() -> [JSONValue] {
        let elements = array
        self = .null
        return elements ?? []
    }

    /// Applies a merge patch (RFC 7386).
    ///
    /// A patch that is not an object replaces the value. Otherwise the value counts as an empty object unless
    /// it is an object, and the patch's members replace or add its members, or remove them if they are null.
    ///
    /// - Parameter patch: The patch.
    package mutating func merge(patch: JSONValue) {
        guard case .object(let changes) = patch else {
            self = patch
            return
        }
        var members = takeMembers()
        for change in changes {
            if case .null = change.value {
                members.remove(change.key)
            } else {
                members.update(change.key) { value, _ in value.merge(patch: change.value) }
            }
        }
        self = .object(members)
    }

    /// The first place, in the order of keys and positions, at which two values differ; nil if they are
    /// equal.
    ///
    /// - Parameter other: The other value.
    /// - Returns: The place. A member or an element that only one value has is a difference at its place.
    public func firstDifference(from other: JSONValue) -> JSONPointer? {
        changes(to: other).first?.path
    }
}
