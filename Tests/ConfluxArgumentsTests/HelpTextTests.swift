import ConfluxArguments
import Testing

struct HelpTextTests {
    @Test func `the help of a program lists its commands`() throws {
        let expected = """
            Usage: conflux COMMAND

            Shared state, kept consistent.

            Commands:
              sequencer    Decide the order of actions.
              worker       Host stores.
              dispatch     Dispatch an action.
              log          Show the log.
              echo         Say words.
              help         Show the help of a command.
              completions  Print a completion script for a shell.

            Options:
              -h, --help     Show this help.
              -V, --version  Show the version.

            Exit codes:
              0   done
              64  the line can't be understood

            'conflux COMMAND --help' tells you more about a command.
            """
        #expect(try show("--help") == expected)
        #expect(try show("-h") == expected)
        #expect(try show("help") == expected)
    }

    @Test func `the help of a command shows everything about it`() throws {
        #expect(
            try show("sequencer", "--help") == """
                Usage: conflux sequencer [--bind ENDPOINT] (--data DIR | --memory)
                                         [--durability fsync|os] [--beat-interval DURATION]

                Decide the order of actions.

                One process owns the end of the log. It takes batches from nodes, makes them
                durable together, and publishes them in one order to everyone.

                It ends cleanly on SIGINT.

                Options:
                  -b, --bind ENDPOINT        Where nodes connect. [default:
                                             tcp://127.0.0.1:7400; environment: CONFLUX_BIND]
                      --data DIR             The folder that holds the log.
                  -m, --memory               Keep the log in memory, and lose it when the
                                             process ends.
                      --durability fsync|os  When a commit counts as kept. [default: fsync]
                      --beat-interval DURATION
                                             How often an idle sequencer says that it lives.
                                             [default: 100ms; environment: CONFLUX_BEAT]
                  -h, --help                 Show this help.
                  -V, --version              Show the version.

                Examples:
                  Serve a durable log:
                    conflux sequencer --data /var/lib/conflux
                """)
    }

    @Test func `the usage lists operands in their order`() throws {
        let text = try show("help", "dispatch")
        #expect(
            text.hasPrefix(
                """
                Usage: conflux dispatch [--payload-max SIZE] TARGET [ACTION | --file FILE]
                """))
    }

    @Test func `the subcommands of a command that runs by itself are optional`() throws {
        #expect(
            try show("log", "-h").hasPrefix(
                "Usage: conflux log [--from SEQ] [--json] [COMMAND]\n"))
        #expect(try show("help", "log", "skip").hasPrefix("Usage: conflux log skip SEQ\n"))
    }

    @Test(arguments: [0, 80, 90, 100, 1000])
    func `no line is wider than the columns`(columns: Int) throws {
        let limit = min(max(columns, 80), 100)
        let text = try show("sequencer", "--help", columns: columns)
        #expect(text.split(separator: "\n").allSatisfy { $0.count <= limit })
    }

    @Test func `help takes precedence over a mistake, but not after two dashes`() throws {
        #expect(try show("worker", "--nonsense", "--help").hasPrefix("Usage: conflux worker "))
        #expect(try invoke("echo", "--", "--help")[Sample.words] == ["--help"])
    }

    @Test func `help on an unknown command suggests the one that was meant`() throws {
        #expect(try mistake("help", "lgo").suggestion == "log")
        #expect(
            try mistake("help", "worker", "x").message
                == "the command has no subcommands; 'x' is unexpected")
    }

    @Test func `the completions command says where to put its scripts`() throws {
        #expect(
            try show("completions", "--help") == """
                Usage: conflux completions SHELL

                Print a completion script for a shell.

                Arguments:
                  SHELL  Which shell: bash, zsh or fish.

                Options:
                  -h, --help     Show this help.
                  -V, --version  Show the version.

                Examples:
                  Bash, in ~/.bashrc:
                    eval "$(conflux completions bash)"
                  Zsh, in ~/.zshrc after compinit:
                    source <(conflux completions zsh)
                  Fish:
                    conflux completions fish > ~/.config/fish/completions/conflux.fish
                """)
    }

    @Test func `every command shows the program's version`() throws {
        #expect(try show("--version") == "conflux 0.1.0")
        #expect(try show("worker", "-V") == "conflux 0.1.0")
        #expect(try show("worker", "--nonsense", "--version") == "conflux 0.1.0")
        #expect(try show("log", "skip", "--version") == "conflux 0.1.0")
        #expect(try invoke("echo", "--", "--version")[Sample.words] == ["--version"])
    }
}
