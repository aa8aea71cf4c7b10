import Testing

@testable import ConfluxCoding

/// Patches between random values, applied by a reader of RFC 6902 that knows only what is there.
struct JSONPatchTests {
    private func patch(_ old: String, _ new: String) throws -> String {
        let bytes = try JSONPatch.bytes(from: JSONValue(json: old), to: JSONValue(json: new))
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `only what differs is in a patch`() throws {
        #expect(try patch(#"{"a":1}"#, #"{"a":1}"#) == "[]")
        #expect(
            try patch(#"{"a":1,"b":2,"d":[]}"#, #"{"b":3,"c":4,"d":[]}"#)
                == #"[{"op":"remove","path":"/a"},{"op":"replace","path":"/b","value":3},{"op":"add","path":"/c","value":4}]"#
        )
        #expect(
            try patch("[1,2,3,4]", "[1,9,2,3,4]") == #"[{"op":"add","path":"/1","value":9}]"#)
        #expect(
            try patch("[1,2,3,4]", "[1,4]")
                == #"[{"op":"remove","path":"/1"},{"op":"remove","path":"/1"}]"#)
        #expect(
            try patch(#"{"x/y":{"~":1}}"#, #"{"x/y":{"~":2}}"#)
                == #"[{"op":"replace","path":"/x~1y/~0","value":2}]"#)
        #expect(try patch("1", "1.0") == #"[{"op":"replace","path":"","value":1.0}]"#)
    }

    @Test func `a patch makes the later value of the former`() throws {
        var random = SplitMix(state: 7)
        for _ in 0..<2_000 {
            let old = value(depth: 4, &random)
            let new = Bool.random(using: &random) ? value(depth: 4, &random) : changed(old, &random)
            let operations = try JSONValue(json: try JSONPatch.bytes(from: old, to: new))
            var result = old
            for operation in try #require(operations.array) {
                result = try apply(operation, to: result)
            }
            #expect(result == new)
        }
    }

    // MARK: Random values

    private func value(depth: Int, _ random: inout SplitMix) -> JSONValue {
        switch Int.random(in: 0..<(depth > 0 ? 6 : 4), using: &random) {
        case 0: .null
        case 1: .bool(.random(using: &random))
        case 2: .integer(JSONInteger(Int.random(in: 0..<3, using: &random)))
        case 3: .string(["", "a", "~/", "ä"].randomElement(using: &random) ?? "")
        case 4:
            .array(
                (0..<Int.random(in: 0..<5, using: &random)).map { _ in
                    value(depth: depth - 1, &random)
                })
        default:
            .object(
                (0..<Int.random(in: 0..<4, using: &random)).reduce(into: JSONObject()) {
                    object, _ in
                    let key = ["", "a", "b", "a/b", "~"].randomElement(using: &random) ?? ""
                    object[key] = value(depth: depth - 1, &random)
                })
        }
    }

    /// A value that differs at one place.
    private func changed(_ old: JSONValue, _ random: inout SplitMix) -> JSONValue {
        switch old {
        case .array(var elements) where !elements.isEmpty:
            let place = elements.indices.randomElement(using: &random) ?? 0
            switch Int.random(in: 0..<3, using: &random) {
            case 0: elements.remove(at: place)
            case 1: elements.insert(value(depth: 1, &random), at: place)
            default: elements[place] = changed(elements[place], &random)
            }
            return .array(elements)
        case .object(var members):
            for member in members where Bool.random(using: &random) {
                members[member.key] = changed(member.value, &random)
            }
            return .object(members)
        default: return value(depth: 2, &random)
        }
    }

    // MARK: Applying

    private func apply(_ operation: JSONValue, to value: JSONValue) throws -> JSONValue {
        let path = try #require(operation.object?["path"]?.string)
        let tokens = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map {
            String($0).replacing("~1", with: "/").replacing("~0", with: "~")
        }
        return try change(value, at: tokens[...], operation)
    }

    private func change(
        _ value: JSONValue, at tokens: ArraySlice<String>, _ operation: JSONValue
    ) throws -> JSONValue {
        let kind = try #require(operation.object?["op"]?.string)
        let new = operation.object?["value"]
        guard let token = tokens.first else { return try #require(new) }
        let isLast = tokens.count == 1
        if var object = value.object {
            try #require((object[token] == nil) == (kind == "add" && isLast))
            object[token] =
                isLast
                ? (kind == "remove" ? nil : new)
                : try change(try #require(object[token]), at: tokens.dropFirst(), operation)
            return .object(object)
        }
        var array = try #require(value.array)
        let place = try #require(Int(token))
        if !isLast {
            array[place] = try change(array[place], at: tokens.dropFirst(), operation)
        } else if kind == "add" {
            array.insert(try #require(new), at: place)
        } else if kind == "remove" {
            array.remove(at: place)
        } else {
            array[place] = try #require(new)
        }
        return .array(array)
    }
}

private struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
