import ConfluxArguments
import Testing

struct ManualPageTests {
    @Test func `a command has a manual page with all that its description has`() throws {
        #expect(
            try show("help", "--man", "sequencer") == #"""
                .TH "CONFLUX\-SEQUENCER" 1 "" "conflux 0.1.0"
                .nh
                .ad l
                .SH NAME
                conflux\-sequencer \- Decide the order of actions
                .SH SYNOPSIS
                .B conflux sequencer [\-\-bind ENDPOINT] (\-\-data DIR | \-\-memory) [\-\-durability fsync|os] [\-\-beat\-interval DURATION]
                .SH DESCRIPTION
                Decide the order of actions.
                .PP
                One process owns the end of the log. It takes batches from nodes, makes them durable together, and publishes them in one order to everyone.
                .PP
                It ends cleanly on SIGINT.
                .SH OPTIONS
                .TP
                .B \-b, \-\-bind ENDPOINT
                Where nodes connect. [default: tcp://127.0.0.1:7400; environment: CONFLUX_BIND]
                .TP
                .B \-\-data DIR
                The folder that holds the log.
                .TP
                .B \-m, \-\-memory
                Keep the log in memory, and lose it when the process ends.
                .TP
                .B \-\-durability fsync|os
                When a commit counts as kept. [default: fsync]
                .TP
                .B \-\-beat\-interval DURATION
                How often an idle sequencer says that it lives. [default: 100ms; environment: CONFLUX_BEAT]
                .TP
                .B \-h, \-\-help
                Show this help.
                .TP
                .B \-V, \-\-version
                Show the version.
                .SH EXIT STATUS
                .TP
                .B 0
                done.
                .TP
                .B 64
                the line can\(aqt be understood.
                .SH ENVIRONMENT
                .TP
                .B CONFLUX_BIND
                The value of \-\-bind, unless that is given.
                .TP
                .B CONFLUX_BEAT
                The value of \-\-beat\-interval, unless that is given.
                .TP
                .B NO_COLOR
                Without colours.
                .SH FILES
                .TP
                .B \(ti/.conflux
                What is kept.
                .SH EXAMPLES
                .PP
                Serve a durable log:
                .PP
                .RS
                .nf
                conflux sequencer \-\-data /var/lib/conflux
                .fi
                .RE
                .SH SEE ALSO
                conflux(1)
                """#)
    }

    @Test func `the program's page names the page of each command`() throws {
        let page = try show("help", "--man").replacing("\\-", with: "-")
        #expect(page.hasPrefix(".TH \"CONFLUX\" 1 "))
        #expect(page.contains("\n.B conflux-log(1)\nShow the log.\n"))
        #expect(
            page.hasSuffix(
                """
                .SH SEE ALSO
                conflux-sequencer(1), conflux-worker(1), conflux-dispatch(1), conflux-log(1), \
                conflux-log-skip(1), conflux-echo(1), conflux-help(1), conflux-completions(1)
                """))
        #expect(
            try show("help", "--man", "log", "skip").hasPrefix(".TH \"CONFLUX\\-LOG\\-SKIP\" 1 "))
        #expect(try mistake("help", "--man", "lgo").suggestion == "log")
    }
}
