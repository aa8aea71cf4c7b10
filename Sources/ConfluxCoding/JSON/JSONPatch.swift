/// Makes JSON Patches ([RFC 6902](https://www.rfc-editor.org/rfc/rfc6902)): the operations that make one JSON value of
/// another.
///
/// Of two arrays, the equal elements at both ends are left alone. So an insertion or a removal in the middle is one
/// operation, and not one for each element after it.
package struct JSONPatch {
    private var operations: [JSONValue] = []

    /// Makes a patch.
    ///
    /// - Parameters:
    ///   - old: The former value.
    ///   - new: The later value.
    /// - Returns: The operations that make the later value of the former, as JSON in UTF-8.
    /// - Throws: If the patch is nested too deeply.
    package static func bytes(
        from old: JSONValue, to new: JSONValue
    ) throws(CodingFailure) -> [UInt8] {
        var patch = JSONPatch()
        patch.compare(old, new, at: [])
        return try JSONValue.array(patch.operations).canonicalBytes()
    }

    private mutating func add(_ operation: String, _ tokens: [String], _ value: JSONValue? = nil) {
        var object: JSONObject = [
            "op": .string(operation), "path": .string(JSONPointer(tokens: tokens).description),
        ]
        object["value"] = value
        operations.append(.object(object))
    }

    private mutating func compare(_ old: JSONValue, _ new: JSONValue, at tokens: [String]) {
        switch (old, new) {
        case (.object(let olds), .object(let news)): compare(olds, news, at: tokens)
        case (.array(let olds), .array(let news)): compare(olds, news, at: tokens)
        default: if old != new { add("replace", tokens, new) }
        }
    }

    private mutating func compare(_ olds: JSONObject, _ news: JSONObject, at tokens: [String]) {
        olds.forEachMember(beside: news) { key, old, new in
            switch (old, new) {
            case (let old?, let new?): compare(old, new, at: tokens + [key])
            case (nil, let new?): add("add", tokens + [key], new)
            default: add("remove", tokens + [key])
            }
        }
    }

    private mutating func compare(_ olds: [JSONValue], _ news: [JSONValue], at tokens: [String]) {
        let most = min(olds.count, news.count)
        var front = 0
        while front < most, olds[front] == news[front] { front += 1 }
        var back = 0
        while back < most - front, olds[olds.count - 1 - back] == news[news.count - 1 - back] {
            back += 1
        }
        let (oldCount, newCount) = (olds.count - front - back, news.count - front - back)
        for place in 0..<min(oldCount, newCount) {
            compare(
                olds[front + place], news[front + place], at: tokens + ["\(front + place)"])
        }
        let place = front + min(oldCount, newCount)
        for _ in newCount..<max(newCount, oldCount) { add("remove", tokens + ["\(place)"]) }
        for position in place..<max(place, front + newCount) {
            add("add", tokens + ["\(position)"], news[position])
        }
    }
}
