import ConfluxNode
import ConfluxWorker
import Testing

@Suite struct `JSON for people` {
    private func laid(_ json: String, columns: Int?, from column: Int = 0) -> String {
        String(
            decoding: JSONLayout.bytes(json.utf8, .plain, from: column, columns: columns),
            as: UTF8.self)
    }

    @Test func `a value that fits on a line stays on one`() {
        #expect(laid(#"{"a":1}"#, columns: 9) == #"{"a": 1}"#)
        #expect(laid(#"{"a":1}"#, columns: 7) == "{\n  \"a\": 1\n}")
        #expect(laid(#"{"a":1}"#, columns: 9, from: 4) == "{\n  \"a\": 1\n}")
    }

    @Test func `a value that does not fit on a line has one member a line`() {
        #expect(
            laid(#"{"list":[100,200,300],"z":{"y":"x"}}"#, columns: 16) == """
                {
                  "list": [
                    100,
                    200,
                    300
                  ],
                  "z": {
                    "y": "x"
                  }
                }
                """)
    }

    @Test(arguments: [
        "1.50", "-0", "18446744073709551615", "\"a\\\"b,[{\"", "[]", "{}", "null",
        #"[[],{},[{}]]"#,
        #"{ "b" : 1.50 , "a" : 2 }"#,
    ])
    func `it stays the same value, at every width`(json: String) throws {
        for columns in [1, 5, 10, 20, 200] {
            #expect(try JSONValue(json: laid(json, columns: columns)) == JSONValue(json: json))
        }
        #expect(!laid(json, columns: nil).contains("\n"))
    }

    @Test func `characters that a terminal could obey are escaped`() {
        #expect(laid("\"a\u{9B}31m\u{7F}\"", columns: nil) == #""a\u009b31m\u007f""#)
        #expect(laid("\"é\u{A0}\"", columns: nil) == "\"é\u{A0}\"")
    }
}
