/// A place at which two JSON values differ.
public struct JSONChange: Hashable, Sendable, CustomStringConvertible {
    /// The place. A member or an element that only one value has is a change at its place.
    public let path: JSONPointer
    /// What the former value has there; nil if it has nothing there.
    public let old: JSONValue?
    /// What the later value has there; nil if it has nothing there.
    public let new: JSONValue?

    /// Makes a change.
    ///
    /// - Parameters:
    ///   - path: The place.
    ///   - old: What was there; nil for nothing.
    ///   - new: What is there; nil for nothing.
    public init(path: JSONPointer, old: JSONValue?, new: JSONValue?) {
        self.path = path
        self.old = old
        self.new = new
    }

    /// One line: `+ /minimum: 5`, `- /left: 7`, or `~ /size/width: 3 → 4`.
    public var description: String {
        switch (old, new) {
        case (let old?, let new?): "~ \(path): \(old) → \(new)"
        case (nil, let new?): "+ \(path): \(new)"
        case (let old?, nil): "- \(path): \(old)"
        case (nil, nil): "  \(path)"
        }
    }
}

extension JSONChange {
    /// The first place at which two encoded values differ; nil if there is none, or if one is not JSON.
    package static func first(from old: [UInt8], to new: [UInt8]) -> JSONChange? {
        guard let old = try? JSONValue(json: old), let new = try? JSONValue(json: new) else {
            return nil
        }
        return old.changes(to: new).first
    }
}

extension JSONValue {
    /// The places at which another value differs from this one, in the order of keys and positions.
    ///
    /// Elements of arrays are compared by their positions. A value whose kind changed is one change, whatever is in it.
    ///
    /// - Parameter later: The other value.
    /// - Returns: The changes that make the other value of this one; none if they are equal.
    public func changes(to later: JSONValue) -> [JSONChange] {
        var changes: [JSONChange] = []
        addChanges(to: later, at: [], into: &changes)
        return changes
    }

    private func addChanges(
        to later: JSONValue, at tokens: [String], into changes: inout [JSONChange]
    ) {
        func add(_ token: String, _ old: JSONValue?, _ new: JSONValue?) {
            changes.append(
                JSONChange(path: JSONPointer(tokens: tokens + [token]), old: old, new: new))
        }
        switch (self, later) {
        case (.array(let olds), .array(let news)):
            for (position, pair) in zip(olds, news).enumerated() {
                pair.0.addChanges(to: pair.1, at: tokens + ["\(position)"], into: &changes)
            }
            for position in news.count..<max(news.count, olds.count) {
                add("\(position)", olds[position], nil)
            }
            for position in olds.count..<max(news.count, olds.count) {
                add("\(position)", nil, news[position])
            }
        case (.object(let olds), .object(let news)):
            olds.forEachMember(beside: news) { key, old, new in
                if let old, let new {
                    old.addChanges(to: new, at: tokens + [key], into: &changes)
                } else {
                    add(key, old, new)
                }
            }
        default:
            if self != later {
                changes.append(
                    JSONChange(path: JSONPointer(tokens: tokens), old: self, new: later))
            }
        }
    }
}

extension JSONObject {
    /// Calls a function for each key of this object or of another one, in the order of the keys.
    func forEachMember(
        beside later: JSONObject, _ body: (String, _ old: JSONValue?, _ new: JSONValue?) -> Void
    ) {
        // The members of both are sorted by their keys.
        var (oldRest, newRest) = (makeIterator(), later.makeIterator())
        var (old, new) = (oldRest.next(), newRest.next())
        while let key = old?.key ?? new?.key {
            let order =
                if let old, let new { UTF8Order.compare(old.key, new.key) } else {
                    old == nil ? 1 : -1
                }
            body(
                order <= 0 ? key : new?.key ?? key, order <= 0 ? old?.value : nil,
                order >= 0 ? new?.value : nil)
            if order <= 0 { old = oldRest.next() }
            if order >= 0 { new = newRest.next() }
        }
    }
}
