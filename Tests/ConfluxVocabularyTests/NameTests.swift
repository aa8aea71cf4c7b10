import ConfluxVocabulary
import Testing

struct NameTests {
    @Test(arguments: ["a", "counter", "a-b_c.9", String(repeating: "x", count: 64)])
    func `a name of the alphabet is accepted`(text: String) {
        #expect(Name(text)?.text == text)
    }

    @Test(arguments: ["", "Counter", "a b", "ä", "a/b", String(repeating: "x", count: 65)])
    func `a name outside the alphabet or the bound is not`(text: String) {
        #expect(Name(text) == nil)
    }

    @Test func `a store name without an instance is the shared one`() throws {
        #expect(try #require(StoreName("room")).description == "room/shared")
        #expect(try #require(StoreName("room/42")).description == "room/42")
    }

    @Test(arguments: ["room/", "/42", "room/4/2", "Room/42", ""])
    func `a malformed store name is refused`(text: String) {
        #expect(StoreName(text) == nil)
    }

    @Test(arguments: ["room", "room/shared", "room/42"])
    func `a target names one store, as a store's name does`(text: String) throws {
        #expect(Target(text) == .store(try #require(StoreName(text))))
    }

    @Test func `a target of every store is marked as such, and survives its text`() throws {
        let target = Target.state(try #require(Name("room")))
        #expect(Target("room/*") == target)
        #expect(target.description == "room/*")
    }

    @Test(arguments: ["room/", "*", "*/*", "/*", "room/4*", "room/4/*", "Room/*"])
    func `a malformed target is refused`(text: String) {
        #expect(Target(text) == nil)
    }
}

struct IdentifierTests {
    @Test func `an identifier survives its text`() {
        let identifier = Identifier(high: 0xAB, low: 1)
        #expect(identifier.description == "00000000000000ab0000000000000001")
        #expect(Identifier(identifier.description) == identifier)
    }

    @Test(arguments: [
        "", "00", String(repeating: "g", count: 32), "+" + String(repeating: "0", count: 31),
    ])
    func `other texts are not identifiers`(text: String) {
        #expect(Identifier(text) == nil)
    }
}
