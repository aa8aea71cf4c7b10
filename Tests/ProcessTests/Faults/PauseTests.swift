import Conflux
import Foundation
import Testing

extension ProcessTests {
    /// A sequencer that is stopped for a while. It accepts connections, and says nothing.
    struct PauseTests {
        /// How long it is stopped, in seconds.
        private static let pauses =
            ProcessInfo.processInfo.environment["CONFLUX_PAUSE_SECONDS"].flatMap { Int($0) }
            .map { [$0] } ?? [3, 8]

        /// Asks for the outcome of the action whose dispatch timed out, by the token that was printed.
        private func ask(for stream: Child, at address: String, _ site: Site) async throws {
            let message = stream.output.soFar.joined()
            let words = try #require(message.firstMatch(of: /conflux outcome (\S+) to find out/))
            let child = try site.start([
                "outcome", String(words.1), "--json", "--connect", address, "--timeout", "60s",
            ])
            let outcome = try await Tool.outcome(of: child)
            // The withdrawal was in time, or it was not.
            #expect([.exited(0), .exited(80)].contains(outcome.end), "\(outcome)")
        }

        @Test(arguments: pauses)
        func `short waits end in time and name the address, and long ones get what they wait for`(
            seconds: Int
        ) async throws {
            try await withSite { site in
                let sequencer = try await site.sequencer()
                let address = sequencer.address
                let worker = try await site.worker("alpha", of: sequencer, stores: ["counter"])
                func start(_ words: [String], timeout: String, input: Child.Input = .nothing) throws
                    -> Child
                {
                    try site.start(
                        words + ["--json", "--connect", address, "--timeout", timeout],
                        input: input)
                }
                let shortStream = try start(
                    ["dispatch", "counter", "-"], timeout: "1s", input: .pipe)
                let longStream = try start(
                    ["dispatch", "counter", "-"], timeout: "100s", input: .pipe)
                for stream in [shortStream, longStream] {
                    stream.feed(["increment"])
                    _ = try await stream.output.line(0)
                }
                let mark = worker.child.output.count

                sequencer.child.signal(SIGSTOP)
                let begun = ContinuousClock.now
                let over = OneTime<Bool>()
                over.after(.seconds(seconds), give: true)
                for stream in [shortStream, longStream] { stream.feed(["increment"]) }
                let short = [
                    try start(["status"], timeout: "1s"),
                    try start(["dispatch", "counter", "increment"], timeout: "1s"),
                ]
                let long = try start(["dispatch", "counter", "increment"], timeout: "100s")
                for (child, code) in [(short[0], 69), (short[1], 69), (shortStream, 83)] {
                    let outcome = try await Tool.outcome(of: child)
                    let time = ContinuousClock.now - begun
                    #expect(time >= .seconds(1) && time < .seconds(6), "\(outcome)")
                    #expect(outcome.end == .exited(Int32(code)), "\(outcome)")
                    let said = outcome.message + outcome.output.joined()
                    #expect(said.contains(address) && !said.contains(".."), "\(outcome)")
                }
                let report = try await worker.child.output.first(from: mark) { line in
                    try object(line)[key: "event"] == "unreachable"
                }
                #expect(report.line.contains(address), "\(report.line)")
                // The pause is the fault itself.
                _ = await over.value()
                #expect(long.isRunning && longStream.isRunning && worker.child.isRunning)

                sequencer.child.signal(SIGCONT)
                try await ask(for: shortStream, at: address, site)
                longStream.endInput()
                for child in [long, longStream] {
                    let outcome = try await Tool.outcome(of: child)
                    #expect(outcome.end == .exited(0), "\(outcome)")
                }
                let last = try await site.dispatch("increment", to: "counter", at: address)
                let sightings = try await site.sightings(
                    of: "counter", at: address, in: ["alpha"], from: last)
                // The last action of the short stream may be in the log.
                #expect([#"{"count":5}"#, #"{"count":6}"#].contains(sightings.first?.state))
                // The worker kept its state: it had nothing to load again.
                let events = try worker.child.output.soFar[mark...].map {
                    try object($0)[key: "event"]?.string ?? ""
                }
                #expect(events == ["disconnected", "unreachable", "reconnected"])
            }
        }
    }
}
