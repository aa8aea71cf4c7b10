import ConfluxVocabulary
import Foundation
import Testing

/// The encoded forms are stable: none of these texts may change.
struct CodableFormTests {
    private func check<Value: Codable & Equatable>(
        _ value: Value, is json: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let text = String(decoding: try encoder.encode(value), as: UTF8.self)
        #expect(text == json, sourceLocation: sourceLocation)
        let read = try JSONDecoder().decode(Value.self, from: Data(json.utf8))
        #expect(read == value, sourceLocation: sourceLocation)
    }

    @Test func `numbers keep every digit`() throws {
        try check(Timestamp(1_700_000_000_000_000_001), is: "1700000000000000001")
        try check(Timestamp(-1), is: "-1")
        try check(Timestamp(.max), is: "9223372036854775807")
        try check(SequenceNumber(42), is: "42")
        try check(SequenceNumber(.max), is: "18446744073709551615")
        try check(Epoch(7), is: "7")
        try check(Incarnation(3), is: "3")
    }

    @Test func `an origin and an identifier are their texts`() throws {
        try check(Origin(incarnation: Incarnation(3), counter: 7), is: #""3:7""#)
        try check(Identifier(high: 1, low: 2), is: #""00000000000000010000000000000002""#)
    }

    @Test func `a token of a dispatch is a text`() throws {
        try check(
            DispatchToken(
                log: LogID(high: 1, low: 2),
                origin: Origin(incarnation: Incarnation(3), counter: 7),
                since: StoreVersion(sequence: SequenceNumber(17), epoch: Epoch(512))),
            is: #""3:7-17@512-00000000000000010000000000000002""#)
    }

    @Test func `a receipt is an object, and its log is left out if there is none`() throws {
        var log: LogID? = LogID(high: 1, low: 2)
        func receipt() -> Receipt {
            Receipt(
                log: log, epoch: Epoch(7), sequence: SequenceNumber(42),
                timestamp: Timestamp(1_700_000_000_000_000_001))
        }
        try check(
            receipt(),
            is: """
                {"epoch":7,"log":"00000000000000010000000000000002","sequence":42,\
                "timestamp":1700000000000000001}
                """)
        log = nil
        try check(
            receipt(), is: #"{"epoch":7,"sequence":42,"timestamp":1700000000000000001}"#)
    }

    @Test(arguments: ["", "3", "3:", "3:7:1", "+3:7", "03:7", "3:-7", "a:7"])
    func `text that is not an origin is not read`(text: String) {
        #expect(Origin(text) == nil)
        let json = Data("\"\(text)\"".utf8)
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(Origin.self, from: json) }
    }
}
