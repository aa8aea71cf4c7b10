import ConfluxArguments
import Testing

struct ValueParserTests {
    @Test(arguments: [
        ("0s", Duration.zero), ("7ns", .nanoseconds(7)), ("9us", .microseconds(9)),
        ("250ms", .milliseconds(250)), ("5s", .seconds(5)), ("1m", .seconds(60)),
        ("2h", .seconds(7200)), ("1d", .seconds(86400)),
    ])
    func `a duration is a number and a unit`(text: String, expected: Duration) throws {
        #expect(try ValueParser.duration().parse(text) == expected)
    }

    @Test(arguments: ["", "5", "s", "5 s", "-5s", "1.5s", "5S", "1m30s"])
    func `other texts are not durations`(text: String) throws {
        let error = try #require(throws: InvalidValue.self) {
            try ValueParser.duration().parse(text)
        }
        #expect(
            error.reason == "'\(text)' is not a duration; write a whole number and a unit, such as "
                + "250ms, 5s or 1m")
    }

    @Test func `a duration must lie in its range`() throws {
        let parser = ValueParser.duration(in: .milliseconds(10) ... .seconds(90))
        #expect(try parser.parse("10ms") == .milliseconds(10))
        #expect(try parser.parse("90s") == .seconds(90))
        #expect(throws: InvalidValue("'9ms' is too little; the least is 10ms")) {
            try parser.parse("9ms")
        }
        #expect(throws: InvalidValue("'91s' is too much; the most is 90s")) {
            try parser.parse("91s")
        }
        #expect(throws: InvalidValue("'99999999999999999999d' is too much; the most is 90s")) {
            try parser.parse("99999999999999999999d")
        }
    }

    @Test(arguments: [
        ("0", 0), ("17", 17), ("17B", 17), ("64KiB", 65536), ("1MiB", 1 << 20),
        ("3GiB", 3 << 30), ("2TiB", 2 << 40),
    ])
    func `a size is bytes, or a number and a binary unit`(text: String, expected: Int) throws {
        #expect(try ValueParser.byteSize().parse(text) == expected)
    }

    @Test(arguments: ["", "KiB", "1MB", "1k", "1M", "1.5MiB", "-1", "1 MiB", "1\u{212A}iB"])
    func `other texts are not sizes`(text: String) throws {
        let error = try #require(throws: InvalidValue.self) {
            try ValueParser.byteSize().parse(text)
        }
        #expect(
            error.reason == "'\(text)' is not a size; write whole bytes, or a whole number with "
                + "KiB, MiB, GiB or TiB, such as 64KiB")
    }

    @Test func `a size must lie in its range`() {
        let parser = ValueParser.byteSize(in: 1024...(1 << 30))
        #expect(throws: InvalidValue("'2GiB' is too much; the most is 1GiB")) {
            try parser.parse("2GiB")
        }
        #expect(throws: InvalidValue("'9000000TiB' is too much; the most is 1GiB")) {
            try parser.parse("9000000TiB")
        }
        #expect(throws: InvalidValue("'12' is too little; the least is 1KiB")) {
            try parser.parse("12")
        }
    }

    @Test(arguments: ["0", "000", "-1", "+1", "+99999999999999999999", "1.0", "one", ""])
    func `other texts are not positive integers`(text: String) {
        #expect(throws: InvalidValue("'\(text)' is not a whole number of at least 1")) {
            try ValueParser.positiveInteger.parse(text)
        }
    }

    @Test func `a whole number must lie in its range`() throws {
        let port = ValueParser<UInt16>.integer(in: 0...1023)
        #expect(try port.parse("1023") == 1023)
        #expect(throws: InvalidValue("'1024' is not a whole number from 0 to 1023")) {
            try port.parse("1024")
        }
    }

    @Test(arguments: ["4294967296", "99999999999999999999", "004294967296"])
    func `a number above the largest one of its type is told the range`(text: String) throws {
        let version = ValueParser<UInt32>.integer(in: 1...(.max))
        #expect(try version.parse("4294967295") == 4_294_967_295)
        #expect(
            throws: InvalidValue("'\(text)' is not a whole number from 1 to 4294967295")
        ) {
            try version.parse(text)
        }
    }

    @Test func `an empty text is no value`() {
        #expect(throws: InvalidValue("the value is empty")) { try ValueParser.text.parse("") }
    }

    @Test func `a custom parser says what it expected`() throws {
        let even = ValueParser("EVEN", expecting: "an even number, such as 4") { text in
            Int(text).flatMap { $0.isMultiple(of: 2) ? $0 : nil }
        }
        #expect(try even.map { $0 / 2 }.parse("8") == 4)
        #expect(throws: InvalidValue("'3' is not an even number, such as 4")) {
            try even.parse("3")
        }
    }
}
