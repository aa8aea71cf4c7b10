import ConfluxVocabulary
import Testing

@testable import ConfluxLog

/// The hashes of commits. The expected ones were computed by Python's `hashlib.blake2b`.
@Suite struct ChainHashTests {
    private let genesis = ChainHash.genesis(of: Identifier(high: 42, low: 7))

    @Test func `known commits have the hashes that another program computes`() throws {
        #expect(
            genesis.description
                == "022bfff5dc89b7613efe9437919de19f55f4e4a42f651034e69d734c925cf8f6")
        let first = genesis.next(
            LoggedCommit(
                first: SequenceNumber(1), last: SequenceNumber(2), epoch: Epoch(3),
                bytes: Array("abc".utf8)[...]))
        #expect(
            first.description
                == "061dad89afa3c46cee927b1cbbf22591a5c2572207f24b3b10cf83f098bb55ee")
        let second = first.next(
            LoggedCommit(
                first: SequenceNumber(3), last: SequenceNumber(3), epoch: Epoch(4), bytes: []))
        #expect(
            second.description
                == "6705ee859069403e3487a44bcd514bca7137868ebfffbac551f94c310e53750f")
    }

    @Test func `an anchor is parsed as it is printed`() {
        let anchor = LogAnchor(SequenceNumber(1042), genesis)
        #expect(anchor.description == "1042:\(genesis)")
        #expect(LogAnchor(anchor.description) == anchor)
        #expect(LogAnchor(anchor.description.uppercased()) == anchor)
    }

    @Test(arguments: [
        "", ":", "7", "7:", "7:ab", ":\(String(repeating: "0", count: 64))",
        "-7:\(String(repeating: "0", count: 64))", "+7:\(String(repeating: "0", count: 64))",
        "7:\(String(repeating: "0", count: 63))", "7:\(String(repeating: "0", count: 65))",
        "7:\(String(repeating: "0", count: 63))g", "7:\(String(repeating: "+0", count: 32))",
        "7:\(String(repeating: "0", count: 64)):", " 7:\(String(repeating: "0", count: 64))",
        "18446744073709551615:\(String(repeating: "0", count: 64))",
        "7:\(String(repeating: "é", count: 32))", "7:\(String(repeating: "０", count: 64))",
    ])
    func `text that is not an anchor is not parsed as one`(_ text: String) {
        #expect(LogAnchor(text) == nil)
    }
}
