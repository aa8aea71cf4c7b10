import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker
import Testing

@testable import ConfluxCLI

/// Timers on the command line.
struct TimerTests {
    private func mistake(_ words: String...) throws -> UsageError {
        let all = ["dispatch", "counter"] + words
        return try #require(throws: UsageError.self) {
            guard case .run(let invocation) = try Tool.program.parse(all) else { return }
            try DispatchCommand.validate(invocation)
        }
    }

    private func fields(_ run: Run) throws -> [JSONObject] {
        try run.lines.map { try #require(JSONValue(json: $0).object) }
    }

    // MARK: Times

    @Test(
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("1969-12-31T23:59:59.5Z", -500_000_000),
            ("2030-01-01T00:00:00Z", 1_893_456_000_000_000_000),
            ("2030-01-01T02:00:00+02:00", 1_893_456_000_000_000_000),
            ("2029-12-31 22:15:00.000000001-01:45", 1_893_456_000_000_000_001),
            ("2028-02-29t12:00:00z", 1_835_438_400_000_000_000),
            ("2000-03-01T00:00:00Z", 951_868_800_000_000_000),
            ("1900-03-01T00:00:00Z", -2_203_891_200_000_000_000),
            ("2262-04-11T23:47:16.854775807Z", Int64.max),
        ] as [(String, Int64)])
    func `a time is read to the nanosecond`(text: String, nanoseconds: Int64) throws {
        #expect(try ValueParser<Timestamp>.time.parse(text) == Timestamp(nanoseconds))
    }

    @Test func `every day of four centuries is read as it is printed`() throws {
        var day: Int64 = -(365 * 200)
        while day < 365 * 200 {
            let time = Timestamp(day * 86_400_000_000_000 + 250_000_000)
            #expect(try ValueParser<Timestamp>.time.parse(time.iso8601) == time)
            day += 97
        }
    }

    @Test(arguments: [
        "", "now", "2030-01-01", "2030-01-01T00:00Z", "2030-01-01T00:00:00", "2030-1-1T00:00:00Z",
        "2030-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2030-13-01T00:00:00Z",
        "2030-01-01T24:00:00Z", "2030-01-01T00:60:00Z", "2030-01-01T00:00:60Z",
        "2030-01-01T00:00:00.Z", "2030-01-01T00:00:00.1234567890Z", "2030-01-01T00:00:00+2:00",
        "2030-01-01T00:00:00+24:00", "2030-01-01T00:00:00Z ", "+2030-01-01T00:00:00Z",
        "20300101T000000Z", "２０３０-01-01T00:00:00Z",
    ])
    func `what is no time is a usage error that shows one`(text: String) throws {
        let error = try mistake("increment", "--at", text)
        #expect(error.message.contains("2030-01-01T00:00:00Z"), "\(error.message)")
    }

    @Test(arguments: ["3000-01-01T00:00:00Z", "1600-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59"])
    func `a time that no log can have is a usage error`(text: String) throws {
        #expect(try mistake("increment", "--at", text).message.contains("beyond"))
    }

    // MARK: Options

    @Test func `options that make no sense together are refused, with what to do`() throws {
        let at = "2030-01-01T00:00:00Z"
        #expect(try mistake("increment", "--after", "1s", "--at", at).code == .conflict)
        for words in [["--every", "1m"], ["--key", "k"]] {
            let error = try mistake("increment", words[0], words[1])
            #expect(error.message.hasPrefix(words[0]) && error.message.contains("give --after or"))
        }
        for words in [
            ["--wait", "applied"], ["--if-unchanged-since", "17"],
        ] {
            let error = try mistake("increment", "--after", "1s", words[0], words[1])
            #expect(error.message.hasPrefix(words[0]) && error.message.contains("Leave it out"))
        }
        #expect(
            try mistake("-", "--after", "1s", "--resume", "r").message.hasPrefix("--resume"))
        #expect(
            try mistake("--file", "x", "--after", "1s", "--key", "k").message.contains(
                "each line would replace"))
        for words in [
            ["--after", "-1s"], ["--after", "36501d"], ["--every", "9ms"], ["--key", ""],
            ["--key", String(repeating: "k", count: 129)],
        ] {
            #expect(
                try mistake("increment", "--after", "1s", words[0], words[1]).code
                    != .unknownOption, "\(words)")
        }
        let error = try #require(throws: UsageError.self) {
            guard case .run(let invocation) = try Tool.program.parse(["timers", "--cancel", "k"])
            else { return }
            try TimersCommand.validate(invocation)
        }
        #expect(error.message.contains("conflux timers TARGET --cancel KEY"))
    }

    // MARK: Text

    @Test(arguments: [
        (0, "0s"), (1, "1ns"), (1_500, "1500ns"), (90_000_000_000, "90s"),
        (60_000_000_000, "1m"), (86_400_000_000_000, "1d"), (10_000_000, "10ms"),
    ])
    func `a span is shown in the largest unit that fits`(nanoseconds: Int, text: String) {
        #expect(TimerText.words(.nanoseconds(nanoseconds)) == text)
    }

    @Test func `an entry that is hidden, or of a later version, is no failure`() {
        #expect(TimerText.words([]).contains("hidden"))
        #expect(TimerText.words([99, 1]).contains("later version"))
        #expect(String(checkedUTF8: TimerText.json([])) == #"{"hidden":true}"#)
        #expect(String(checkedUTF8: TimerText.json([99, 1])) == #"{"compact":"YwE="}"#)
    }

    // MARK: With a sequencer

    @Test func `timers are set, listed, cancelled and shown in the log`() async throws {
        try await `A tour of the commands`.withNodes("alpha") { connect in
            let plain = connect.filter { $0 != "--json" }
            let none = try await Run.tool(["timers"] + plain)
            #expect(none.lines == ["no timers"])
            let set = try await Run.tool(
                [
                    "dispatch", "counter", "increment", "--after", "1h", "--every", "90s", "--key",
                    #"a "key""#,
                ] + connect)
            let number = try #require(try fields(set).first?["sequence"])
            let other = try await Run.tool(
                ["dispatch", "document/prefs", "--at", "2031-01-01T00:00:00Z"] + plain + [
                    #"{"remove":{"at":"/draft"}}"#
                ])
            #expect(other.exitCode == .success)
            #expect(other.lines.first?.hasPrefix("timer set as entry ") == true)
            // They fire at once: that of 1970, and that without any delay.
            for words in [["--at", "1970-01-01T00:00:00Z"], ["--after", "0s"]] {
                let run = try await Run.tool(
                    ["dispatch", "counter", "increment"] + words + connect)
                #expect(run.exitCode == .success)
            }

            let all = try await Run.tool(["timers"] + connect)
            let list = try fields(all).filter { $0["key"] != nil || $0["every"] == nil }
            #expect(list.count == 2)
            #expect(list[0]["timer"] == number && list[0]["every"] == 90_000_000_000)
            #expect(list[0]["key"] == #"a "key""# && list[0]["targets"] == ["counter/shared"])
            #expect(list[1]["due"] == 1_924_992_000_000_000_000)
            let table = try await Run.tool(["timers", "counter"] + plain)
            #expect(table.lines.count == 2 && table.lines[0].hasPrefix("TIMER"))
            #expect(table.lines[1].contains(#"90s    "a \"key\"""#), "\(table.lines[1])")
            #expect(try await Run.tool(["timers", "document/*"] + connect).lines.count == 1)

            let words = ["timers", "counter", "--cancel", #"a "key""#]
            let cancelled = try await Run.tool(words + connect)
            #expect(cancelled.exitCode == .success)
            #expect(try fields(cancelled).first?["key"] == #"a "key""#)
            let again = try await Run.failure(of: words + connect, TimersCommand.run)
            #expect(again?.exitCode == .rejected && again?.code == "noSuchTimer")
            #expect(again?.message.contains(#"counter/shared has the key "a \"key\"""#) == true)
            // The key is for one target.
            let elsewhere = try await Run.failure(
                of: ["timers", "counter/*", "--cancel", "k"] + connect, TimersCommand.run)
            #expect(elsewhere?.code == "noSuchTimer")

            let log = try await Run.tool(["log", "--target", "counter"] + plain)
            let text = log.lines.joined(separator: "\n")
            #expect(
                text.contains(
                    #"timer set: counter/shared "a \"key\"" after 1h every 90s  {"increment":{}}  by "#
                ), "\(text)")
            #expect(text.contains(#"timer cancelled: counter/shared "a \"key\""  by "#))
            #expect(text.contains(#"counter/shared  {"increment":{}}  by timer "#))
            #expect(!text.contains("document"))
            let entries = try fields(try await Run.tool(["log"] + connect))
            let fired = entries.filter { $0["timer"] != nil }
            #expect(fired.count == 2 && fired.allSatisfy { $0["kind"] == "action" })
            #expect(fired.allSatisfy { $0["target"] == "counter/shared" })
            let setting = try #require(entries.first { $0["sequence"] == number })
            let order = setting["action"]?["/set"]
            #expect(order?["/after"] == 3_600_000_000_000 && order?["/every"] == 90_000_000_000)
            #expect(order?["/actions/0/target"] == "counter/shared")
            #expect(setting["target"] == "event:conflux.timers")
        }
    }

    @Test func `a stream of timers sets one for each line`() async throws {
        try await `A tour of the commands`.withNodes("alpha") { connect in
            let input = try TemporaryFile("increment\n{nonsense\nincrement\n")
            let run = try await Run.tool(
                ["dispatch", "counter", "--file", input.path, "--after", "1d"] + connect)
            #expect(run.lines.count == 3 && run.exitCode == .invalidInput)
            #expect(try await Run.tool(["timers"] + connect).lines.count == 2)
        }
    }

    @Test func `thousands of timers are listed page by page`() async throws {
        try await `A tour of the commands`.withNodes("alpha") { connect in
            let input = try TemporaryFile(String(repeating: "increment\n", count: 2_500))
            let set = try await Run.tool(
                ["dispatch", "counter", "--file", input.path, "--after", "1d"] + connect)
            #expect(set.exitCode == .success)
            let list = try fields(try await Run.tool(["timers"] + connect))
            #expect(list.count == 2_500)
            #expect(Set(list.map { $0["timer"]?.description }).count == 2_500)
        }
    }
}
