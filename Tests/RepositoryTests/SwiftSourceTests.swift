import Testing

struct SwiftSourceTests {
    private func code(_ text: String) -> String {
        SwiftSource(text).code.joined(separator: "\n")
    }

    @Test func `comments are not code`() {
        let source = SwiftSource("a() // b()\n/* c /* d */ e\n f */ g()")
        #expect(source.code.map { $0.filter { !$0.isWhitespace } } == ["a()", "", "g()"])
        #expect(
            source.comments.map { $0.filter { !$0.isWhitespace } } == [
                "//b()", "/*c/*d*/e", "f*/",
            ])
    }

    @Test(arguments: [
        #"let a = "sleep()""#, ##"let a = #"say "sleep()""#"##, #"let a = "\"sleep()""#,
        "let a = \"\"\"\n  sleep() \"quoted\"\n  \"\"\"", "func `sleep() is bad`() {}",
    ])
    func `the text of a literal is not code`(text: String) {
        #expect(!code(text).contains("sleep"))
        #expect(code(text + "\nb()").hasSuffix("\nb()"))
        #expect(SwiftSource(text).comments.allSatisfy { $0.isBlank })
    }

    @Test func `interpolated code is code`() {
        #expect(code(#""a \(f("x", (1)) + g()) b" + h()"#).words == ["f", "1", "g", "h"])
        #expect(code(##"#"a \(no) \#(yes)"# + h()"##).words == ["yes", "h"])
    }

    @Test func `an unterminated literal ends with its line`() {
        #expect(code("let a = \"b\nc()").hasSuffix("\nc()"))
        #expect(code("#if DEBUG\nc()\n#endif").contains("#if DEBUG"))
    }
}
