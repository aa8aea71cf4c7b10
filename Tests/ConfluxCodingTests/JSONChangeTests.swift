import ConfluxCoding
import Testing

struct JSONChangeTests {
    private func changes(_ old: String, _ new: String) throws -> [String] {
        try JSONValue(json: old).changes(to: JSONValue(json: new)).map(\.description)
    }

    @Test func `equal values have no changes`() throws {
        #expect(try changes(#"{"a":[1,{"b":null}]}"#, #"{"a":[1,{"b":null}]}"#) == [])
    }

    @Test func `each place that differs is one change, in order`() throws {
        #expect(
            try changes(
                #"{"a":1,"b":{"x":1,"y":[1,2,3]},"gone":null}"#,
                #"{"a":"1","b":{"x":1,"y":[1,4]},"new":{"z":0}}"#)
                == [
                    #"~ /a: 1 → "1""#, "~ /b/y/1: 2 → 4", "- /b/y/2: 3", "- /gone: null",
                    #"+ /new: {"z":0}"#,
                ])
        #expect(try changes("[]", "[1,2]") == ["+ /0: 1", "+ /1: 2"])
    }

    @Test func `a value of another kind is one change`() throws {
        #expect(try changes("[1,2]", "{}") == ["~ : [1,2] → {}"])
    }

    @Test func `the first change is where the values first differ`() throws {
        let (old, new) = (
            try JSONValue(json: #"{"a":[1,{"b":2}],"c":0}"#),
            try JSONValue(json: #"{"a":[1,{"b":3,"d":1}]}"#)
        )
        #expect(old.changes(to: new).first?.path == old.firstDifference(from: new))
        #expect(old.changes(to: new).count == 3)
    }
}
