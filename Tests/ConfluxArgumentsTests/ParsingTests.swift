import ConfluxArguments
import Testing

struct ParsingTests {
    @Test func `an option takes the next word or the text after its equals sign`() throws {
        #expect(try invoke("sequencer", "--memory", "--bind", "ipc://a")[Sample.bind] == "ipc://a")
        #expect(try invoke("sequencer", "--memory", "--bind=a=b")[Sample.bind] == "a=b")
    }

    @Test func `an omitted parameter has its default, nil, false or no values`() throws {
        let sequencer = try invoke("sequencer", "--memory")
        #expect(sequencer[Sample.bind] == "tcp://127.0.0.1:7400")
        #expect(sequencer[Sample.durability] == .fsync)
        #expect(sequencer[Sample.data] == nil)
        #expect(sequencer.source(of: Sample.data) == .absent)
        let worker = try invoke("worker", "--connect", "a")
        #expect(worker[Sample.json] == false)
        #expect(worker[Sample.stores] == [])
    }

    @Test func `values are typed`() throws {
        let sequencer = try invoke(
            "sequencer", "--data", "d", "--durability", "os", "--beat-interval", "2s")
        #expect(sequencer[Sample.durability] == .os)
        #expect(sequencer[Sample.beat] == .seconds(2))
        #expect(sequencer[Sample.data] == "d")
        #expect(try invoke("dispatch", "t", "--payload-max", "64KiB")[Sample.payloadMax] == 65536)
        #expect(try invoke("log", "--from", "17")[Sample.from] == 17)
    }

    @Test func `a repeated option keeps the order of its values`() throws {
        let worker = try invoke("worker", "--store", "b", "--connect", "x", "--store=a")
        #expect(worker[Sample.stores] == ["b", "a"])
    }

    @Test func `options may come before, between and after operands`() throws {
        let dispatch = try invoke("dispatch", "counter", "--payload-max", "1KiB", "increment")
        #expect(dispatch[Sample.target] == "counter")
        #expect(dispatch[Sample.action] == "increment")
    }

    @Test func `two dashes end the options`() throws {
        let echo = try invoke("echo", "a", "--", "--help", "-x", "--", "b")
        #expect(echo[Sample.words] == ["a", "--help", "-x", "--", "b"])
    }

    @Test func `a letter stands for an option, with its value behind it or in the same word`()
        throws
    {
        #expect(try invoke("log", "-n", "17")[Sample.from] == 17)
        #expect(try invoke("log", "-n17")[Sample.from] == 17)
        #expect(try invoke("log", "-n=17")[Sample.from] == 17)
        let log = try invoke("log", "-jn", "17")
        #expect(log[Sample.json] && log[Sample.from] == 17)
        #expect(log.source(of: Sample.from) == .commandLine)
        #expect(
            try invoke("worker", "-s", "a", "--connect", "x", "-sb")[Sample.stores] == ["a", "b"])
        #expect(try invoke("echo", "--", "-j")[Sample.words] == ["-j"])
    }

    @Test func `a single dash and a negative number are operands`() throws {
        #expect(try invoke("echo", "-", "-5")[Sample.words] == ["-", "-5"])
    }

    @Test func `a command and its subcommand are told apart`() throws {
        #expect(try invoke("log").command == "log")
        let skip = try invoke("log", "skip", "9")
        #expect(skip.path == ["conflux", "log", "skip"])
        #expect(skip.command == "log skip")
        #expect(skip[Sample.number] == 9)
    }

    @Test func `a program without subcommands has its own parameters`() throws {
        let tool = Program(
            Command("my-worker", summary: "Hosts.", parameters: [Sample.json]), version: "2")
        guard case .run(let plain) = try tool.parse(["--json"]),
            case .show(let version) = try tool.parse(["--json", "--version"])
        else { throw UnexpectedOutcome() }
        #expect(plain.command.isEmpty)
        #expect(plain[Sample.json])
        #expect(version == "my-worker 2")
    }

    @Test func `a command can judge for itself`() throws {
        let error = try invoke("log").usageError("--from is after --to")
        #expect(error.code == .misuse)
        #expect(
            error.description == "conflux log: --from is after --to\nSee 'conflux log --help'.")
    }
}

struct EnvironmentTests {
    @Test func `an option that has a variable is given by it`() throws {
        let variables = ["CONFLUX_CONNECT": "tcp://a", "CONFLUX_JSON": "yes"]
        let worker = try invoke("worker", environment: variables)
        #expect(worker[Sample.connect] == "tcp://a")
        #expect(worker[Sample.json])
        #expect(worker.source(of: Sample.connect) == .environment)
    }

    @Test func `an option that has no variable is not given by one`() throws {
        let dispatch = try invoke("dispatch", "t", environment: ["CONFLUX_PAYLOAD_MAX": "1KiB"])
        #expect(dispatch[Sample.payloadMax] == 1 << 20)
        #expect(
            try mistake("sequencer", environment: ["CONFLUX_DATA": "d"]).code == .missingParameter)
        #expect(
            try mistake("dispatch", environment: ["CONFLUX_TARGET": "t"]).code
                == .missingParameter)
    }

    @Test func `the command line wins`() throws {
        let variables = ["CONFLUX_CONNECT": "e", "CONFLUX_JSON": "1"]
        let worker = try invoke(
            "worker", "--connect", "c", "--json=false", environment: variables)
        #expect(worker[Sample.connect] == "c")
        #expect(worker[Sample.json] == false)
        #expect(worker.source(of: Sample.connect) == .commandLine)
    }

    @Test func `an empty variable is not set`() throws {
        let error = try mistake("worker", environment: ["CONFLUX_CONNECT": ""])
        #expect(error.code == .missingParameter)
    }

    @Test func `a choice that the command line denies is none`() throws {
        #expect(try mistake("sequencer", "--memory=false").code == .missingParameter)
        #expect(try invoke("sequencer", "--memory=false", "--data", "d")[Sample.data] == "d")
    }
}
