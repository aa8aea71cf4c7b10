import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

struct SessionKeyTests {
    private static func hexadecimal(_ words: [UInt32]) -> String {
        words.map { word in
            let digits = String(word, radix: 16)
            return String(repeating: "0", count: 8 - digits.count) + digits
        }.joined()
    }

    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (
            String(repeating: "a", count: 1_000),
            "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"
        ),
    ])
    func `the hash is SHA-256`(text: String, expected: String) {
        #expect(Self.hexadecimal(SHA256.hash(Array(text.utf8))) == expected)
    }

    @Test func `equal keys give equal nonces, and different keys different ones`() throws {
        let key = try #require(SessionKey("nightly import"))
        #expect(key.nonce.description == "bca8300e35151901b48072d186a35589")
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
