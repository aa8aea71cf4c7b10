import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

struct SessionKeyTests {
    @Test func `equal keys give equal nonces, and different keys different ones`() throws {
        let key = try #require(SessionKey("nightly import"))
        #expect(key.nonce.description == "c56c42ad2d82a03c8e1bfc52d8c72403")
        #expect(key.nonce == SessionKey("nightly import")?.nonce)
        #expect(key.nonce != SessionKey("nightly imports")?.nonce)
    }

    @Test func `a key has 1 to 256 bytes`() {
        #expect(SessionKey("") == nil)
        #expect(SessionKey(String(repeating: "x", count: 256)) != nil)
        #expect(SessionKey(String(repeating: "x", count: 257)) == nil)
        #expect(SessionKey(String(repeating: "ü", count: 129)) == nil)
    }
}
