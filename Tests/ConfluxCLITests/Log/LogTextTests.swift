import ConfluxBuiltins
import ConfluxNode
import ConfluxProtocol
import Testing

@testable import ConfluxCLI

@Suite struct `Entries as they are printed` {
    private func json(
        _ payload: [UInt8], of state: String = "custom", _ coding: PayloadCoding = .json
    ) -> String {
        String(decoding: EntryText.json(payload[...], of: Name(state), coding), as: UTF8.self)
    }

    @Test func `a JSON payload is embedded as it is`() {
        #expect(json(Array(#"{ "b":1.50, "a":2 }"#.utf8)) == #"{ "b":1.50, "a":2 }"#)
    }

    @Test func `a payload on several lines becomes one`() {
        #expect(json(Array("{\n\"b\": 1,\r\n\"a\": 2}".utf8)) == #"{"a":2,"b":1}"#)
    }

    @Test func `a payload that is not JSON is printed as its bytes`() {
        #expect(json(Array("{no".utf8)) == #"{"invalid":"e25v"}"#)
    }

    @Test func `a compact payload is decoded where the tool knows the state`() throws {
        let payload = try ActionCoder<CounterAction>().encode(.add(amount: 5), as: .compact)
        #expect(json(payload, of: "counter", .compact) == #"{"add":{"amount":5}}"#)
        #expect(json([1, 2, 3], of: "custom", .compact) == #"{"compact":"AQID"}"#)
        #expect(json([0xFF, 0xFF], of: "counter", .compact) == #"{"compact":"//8="}"#)
    }

    @Test(arguments: [
        ("counter/*", "counter/*", true), ("counter/*", "counter/a", true),
        ("counter/*", "other/*", false), ("counter/a", "counter/*", true),
        ("counter/a", "counter/a", true), ("counter/a", "counter/b", false),
        ("counter", "counter/shared", true), ("counter", "counter/a", false),
    ])
    func `a state's actions concern its stores, and a store's actions its state`(
        wanted: String, target: String, isConcerned: Bool
    ) throws {
        #expect(
            EntryText.concerns(Target(wanted), try #require(Target(target))) == isConcerned)
        #expect(EntryText.concerns(nil, try #require(Target(target))))
    }

    @Test func `a receipt and a failure have the documented form`() {
        let receipt = Receipt(
            log: nil, epoch: Epoch(1), sequence: SequenceNumber(17), timestamp: Timestamp(5))
        #expect(
            DispatchReport.line(receipt, "counter")
                == #"{"epoch":1,"sequence":17,"target":"counter","timestamp":5}"#)
        #expect(
            DispatchReport.line(3, .init(.refused, "no")).description
                == #"{"error":{"code":"refused","message":"no"},"line":3}"#)
    }
}
