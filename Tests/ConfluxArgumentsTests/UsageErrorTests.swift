import ConfluxArguments
import Testing

struct UsageErrorTests {
    @Test func `an unknown command is answered with the one that was meant`() throws {
        let error = try mistake("sequencre")
        #expect(error.code == .unknownCommand)
        #expect(
            error.description == """
                conflux: there is no command 'sequencre'. Did you mean 'sequencer'?
                See 'conflux --help'.
                """)
    }

    @Test func `nothing is suggested for an unknown command that resembles none`() throws {
        #expect(try mistake("frobnicate").message == "there is no command 'frobnicate'")
        #expect(try mistake("frobnicate").suggestion == nil)
    }

    @Test func `a line without a command gets a list of commands`() throws {
        let error = try mistake()
        #expect(error.code == .missingCommand)
        #expect(
            error.description == "conflux: a command is missing: sequencer, worker, dispatch, log, "
                + "echo, help, completions.")
    }

    @Test func `a line without a command gets the examples of a program that has some`() throws {
        let tool = Program(
            Command(
                "tool", summary: "T.",
                examples: [.init("Begin", "tool begin"), .init("End it", "tool end --now")],
                subcommands: [Command("begin", summary: "B.")]), version: "1")
        let error = try #require(throws: UsageError.self) { try tool.parse([]) }
        #expect(
            error.description == """
                tool: a command is missing. To begin with:
                  tool begin      Begin
                  tool end --now  End it
                'tool help' lists all commands, and 'tool COMMAND --help' describes one.
                """)
    }

    @Test func `an unknown letter is answered with the one of the other case, and no other`() throws
    {
        #expect(try mistake("log", "-J").suggestion == "-j")
        let error = try mistake("log", "-x")
        #expect(error.message == "there is no option '-x'")
        #expect(error.suggestion == nil)
        #expect(try mistake("worker", "-jx").message == "there is no option '-jx'")
        // The letter of an option of another command.
        #expect(try mistake("log", "-b").code == .unknownOption)
        #expect(try mistake("log", "-n").message == "'-n' needs a value: --from SEQ")
    }

    @Test func `an option before its command is reported with the place where it belongs`() throws {
        #expect(
            try mistake("--connect", "a", "worker").message
                == "'--connect' belongs after the command: conflux worker --connect")
        #expect(
            try mistake("--json", "log").message
                == "'--json' belongs after the command: conflux log --json")
    }

    @Test func `a subcommand after options is reported with the place where it belongs`() throws {
        #expect(
            try mistake("log", "--json", "skip", "3").message
                == "the command 'skip' belongs before the options")
    }

    @Test func `an unknown option is answered with the one that was meant`() throws {
        let error = try mistake("sequencer", "--memory", "--bnid=x")
        #expect(error.code == .unknownOption)
        #expect(
            error.description == """
                conflux sequencer: there is no option '--bnid'. Did you mean '--bind'?
                See 'conflux sequencer --help'.
                """)
        #expect(try mistake("sequencer", "-bind").suggestion == "--bind")
        #expect(try mistake("sequencer", "--hepl").suggestion == "--help")
        #expect(try mistake("--verison").suggestion == "--version")
        #expect(try mistake("sequencer", "--verison").suggestion == "--version")
    }

    @Test func `an option without its value shows its form`() throws {
        let error = try mistake("sequencer", "--bind")
        #expect(error.code == .missingValue)
        #expect(error.message == "'--bind' needs a value: --bind ENDPOINT")
        #expect(
            try mistake("sequencer", "--bind", "--memory").message
                == "'--bind' needs a value: --bind ENDPOINT; if '--memory' is the value, write "
                + "--bind=--memory")
    }

    @Test func `an option with one value can't be given twice`() throws {
        let error = try mistake("sequencer", "--bind", "a", "--bind", "b")
        #expect(error.code == .repeatedOption)
        #expect(error.message == "'--bind' is given twice; give it once")
    }

    @Test func `a wrong word is answered with the known words`() throws {
        let error = try mistake("sequencer", "--memory", "--durability", "fsnyc")
        #expect(error.code == .invalidValue)
        #expect(
            error.description == """
                conflux sequencer: --durability: 'fsnyc' is not one of fsync, os. Did you mean \
                'fsync'?
                See 'conflux sequencer --help'.
                """)
    }

    @Test func `a wrong value from a variable names the variable`() throws {
        let error = try mistake(
            "sequencer", "--memory", environment: ["CONFLUX_BEAT": "fast"])
        #expect(
            error.message == "CONFLUX_BEAT: 'fast' is not a duration; write a whole "
                + "number and a unit, such as 250ms, 5s or 1m")
    }

    @Test func `a flag takes true or false and nothing else`() throws {
        #expect(
            try mistake("worker", "--connect=a", "--json=maybe").message
                == "--json: 'maybe' is neither true nor false; write true or false")
    }

    @Test func `a missing parameter is named with its variable`() throws {
        let error = try mistake("worker")
        #expect(error.code == .missingParameter)
        #expect(
            error.message == "--connect ADDRESS is missing; give it, or set CONFLUX_CONNECT")
        #expect(try mistake("dispatch").message == "TARGET is missing")
        #expect(try mistake("echo").message == "WORD is missing")
    }

    @Test func `a required group is missing`() throws {
        #expect(try mistake("sequencer").message == "--data DIR or --memory is missing")
    }

    @Test func `exclusive parameters can't be given together`() throws {
        let error = try mistake("sequencer", "--memory", "--data", "d")
        #expect(error.code == .conflict)
        #expect(error.message == "'--data' and '--memory' can't be used together; give one of them")
        #expect(
            try mistake("dispatch", "t", "a", "--file", "f").message
                == "'ACTION' and '--file' can't be used together; give one of them")
    }

    @Test func `an excess operand is named`() throws {
        let error = try mistake("dispatch", "t", "a", "b")
        #expect(error.code == .unexpectedOperand)
        #expect(error.message == "unexpected argument 'b'")
    }
}
