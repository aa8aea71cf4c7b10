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
            case .run(let byVariable) = try tool.parse([], environment: ["MY_WORKER_JSON": "1"]),
            case .show(let version) = try tool.parse(["--json", "--version"])
        else { throw UnexpectedOutcome() }
        #expect(plain.command.isEmpty)
        #expect(plain[Sample.json])
        #expect(byVariable[Sample.json])
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
    @Test func `an option is given by its variable`() throws {
        let worker = try invoke(
            "worker",
            environment: [
                "CONFLUX_CONNECT": "tcp://a", "CONFLUX_STORE": "x, y ,,", "CONFLUX_JSON": "yes",
            ])
        #expect(worker[Sample.connect] == "tcp://a")
        #expect(worker[Sample.stores] == ["x", "y"])
        #expect(worker[Sample.json])
        #expect(worker.source(of: Sample.connect) == .environment)
    }

    @Test func `a dash in the name is an underscore in the variable`() throws {
        let dispatch = try invoke("dispatch", "t", environment: ["CONFLUX_PAYLOAD_MAX": "1KiB"])
        #expect(dispatch[Sample.payloadMax] == 1024)
    }

    @Test func `the command line wins`() throws {
        let variables = ["CONFLUX_CONNECT": "e", "CONFLUX_STORE": "e", "CONFLUX_JSON": "1"]
        let worker = try invoke(
            "worker", "--connect", "c", "--store", "c", "--json=false", environment: variables)
        #expect(worker[Sample.connect] == "c")
        #expect(worker[Sample.stores] == ["c"])
        #expect(worker[Sample.json] == false)
        #expect(worker.source(of: Sample.connect) == .commandLine)
    }

    @Test func `an empty variable is not set`() throws {
        let error = try mistake("worker", environment: ["CONFLUX_CONNECT": ""])
        #expect(error.code == .missingParameter)
    }

    @Test func `a choice on the command line overrides the variables of the other choices`() throws
    {
        let sequencer = try invoke("sequencer", "--memory", environment: ["CONFLUX_DATA": "d"])
        #expect(sequencer[Sample.memory])
        #expect(sequencer[Sample.data] == nil)
    }

    @Test func `a choice that the command line denies overrides nothing`() throws {
        let sequencer = try invoke(
            "sequencer", "--memory=false", environment: ["CONFLUX_DATA": "d"])
        #expect(sequencer[Sample.data] == "d")
        #expect(try mistake("sequencer", "--memory=false").code == .missingParameter)
    }

    @Test func `an empty list counts as not set`() throws {
        let stores = Option(repeated: "--store", atLeastOne: true, parse: .text, summary: "S.")
        let tool = Program(Command("tool", summary: "T.", parameters: [stores]), version: "1")
        #expect(throws: UsageError.self) { try tool.parse([], environment: ["TOOL_STORE": " , "]) }
    }

    @Test func `a flag that its variable denies is no choice`() throws {
        let variables = ["CONFLUX_DATA": "d", "CONFLUX_MEMORY": "0"]
        #expect(try invoke("sequencer", environment: variables)[Sample.data] == "d")
    }

    @Test func `an operand has no environment variable`() throws {
        #expect(
            try mistake("dispatch", environment: ["CONFLUX_TARGET": "t"]).code
                == .missingParameter)
    }
}
