import Testing

@testable import ConfluxExpansion

/// What the macro answers to the compiler. `CompactActionTests` compile and run its answers.
struct ExpansionTests {
    private func reply(_ source: String, as role: String = "extension", conforms: Bool = false) -> (
        source: String, message: String?
    ) {
        func syntax(_ source: String) -> [String: Any] {
            ["source": source, "location": ["fileName": "A.swift", "offset": 10]]
        }
        var request: [String: Any] = [
            "macroRole": role, "declSyntax": syntax(source), "extendedTypeSyntax": syntax("Move"),
            "attributeSyntax": syntax("\n  @CompactAction"),
        ]
        if !conforms {
            request["conformanceListSyntax"] = syntax("struct Placeholder: CompactCodable {}")
        }
        let answer = Plugin.reply(to: ["expandAttachedMacro": request])
        let result = answer["expandMacroResult"] as? [String: Any]
        let diagnostic = (result?["diagnostics"] as? [[String: Any]])?.first
        if let diagnostic {
            let position = diagnostic["position"] as? [String: Any]
            #expect(
                position?["offset"] as? Int == 13 && diagnostic["severity"] as? String == "error")
        }
        return (result?["expandedSource"] as? String ?? "", diagnostic?["message"] as? String)
    }

    @Test func `fields are in the order of their keys, and a public type has public functions`() {
        let enumeration =
            "@CompactAction\npublic enum Move: Codable {\n  case stop\n  case go(to: String, by: Int?)\n}"
        let (source, message) = reply(enumeration, as: "member")
        #expect(message == nil)
        #expect(
            source == """
                    public func write(to output: inout CompactOutput) {
                        switch self {
                        case .stop:
                            output.beginCase("stop", fields: 0)
                        case .go(let value0, let value1):
                            output.beginCase("go", fields: 1 + (value1 == nil ? 0 : 1))
                            if let value1 = value1 { output.encode(value1, forKey: "by") }
                            output.encode(value0, forKey: "to")
                        }
                    }
                    public init(from input: inout CompactInput) throws(CompactMismatch) {
                        if input.isCase("stop", fields: 0) {
                            self = .stop
                            return
                        }
                        if var optionals = input.beginCase("go", fields: 1...2) {
                            let value1: Int? = try input.decodeIfPresent(forKey: "by", of: &optionals)
                            let value0: String = try input.decode(forKey: "to")
                            guard optionals == 0 else { throw CompactMismatch() }
                            self = .go(to: value0, by: value1)
                            return
                        }
                        throw CompactMismatch()
                    }
                """)
        #expect(reply(enumeration).source == "extension Move: CompactCodable {}")
        #expect(reply("struct Move { var a: Int }", as: "member") == ("", nil))
    }

    @Test func `a conformance that the type states is not repeated`() {
        let (source, message) = reply("struct Move: CompactCodable { var a: Int }", conforms: true)
        #expect(message == nil && source.hasPrefix("extension Move {\n"))
    }

    @Test(arguments: [
        ("enum Move: Codable { case a; enum CodingKeys: CodingKey { case b } }", "enum CodingKeys"),
        ("struct Move { var a: Int; init(from decoder: any Decoder) throws {} }", "init ("),
        (
            "struct Move { var a: Int\n  func encode(to encoder: any Encoder) throws {}\n}",
            "func encode"
        ),
        ("struct Move<Value> { var a: Int }", "generic type"),
        ("class Move { var a = 1 }", "for a struct or an enum"),
        ("enum Move: Codable {}", "can't exist"),
        ("struct Move { let a = 1 }", "always has the same value"),
        ("struct Move { @Wrapped var a: Int }", "wrapper"),
        ("struct Move { lazy var a = 1 }", "lazy"),
        ("struct Move { var (a, b) = (1, 2) }", "pattern"),
        ("struct Move {\n#if DEBUG\n  var a: Int\n#endif\n}", "#if"),
    ])
    func `a type whose coding can't be derived is refused`(source: String, message: String) {
        let reply = reply(source)
        #expect(reply.source.isEmpty)
        #expect(reply.message?.contains(message) == true, "\(reply.message ?? "none")")
    }

    @Test(arguments: [
        "", "@", "struct", "struct Move", "struct Move {", "enum Move { case",
        "enum Move { case a(",
        "struct Move { var", "struct Move { var a: ", "struct Move { ) }", "\"", "/*", "`",
        "#\"\\(",
        "enum Move { case a = }", "enum Move { case a(} }", "struct Move { func }",
        "struct Move { = }", "struct Move { } }",
    ])
    func `source of any form ends in an answer`(source: String) {
        let reply = reply(source)
        #expect(reply.message != nil || reply.source.hasPrefix("extension Move: CompactCodable {"))
    }

    @Test func `the compiler learns what the program understands`() {
        let reply = Plugin.reply(to: ["getCapability": [String: Any]()])
        let result = reply["getCapabilityResult"] as? [String: Any]
        #expect((result?["capability"] as? [String: Any])?["protocolVersion"] as? Int == 7)
    }
}
