import Conflux
import ConfluxArguments
import ConfluxSimulation
import ConfluxSystem
import ConfluxVocabulary
import Foundation

#if canImport(Darwin)
    import Darwin
#else
    // Nothing in this process changes `environ`.
    @preconcurrency import Glibc
#endif

/// `conflux-simulate`: runs simulated clusters, many seeds or one.
enum Simulate {
    private static let seed = Option<Int?>(
        "--seed", valueName: "SEED", parse: .integer(in: 0...Int.max),
        summary: "Run this seed alone, and print what happens.")
    private static let first = Option(
        "--first", valueName: "SEED", default: 1, parse: .integer(in: 0...Int.max),
        summary: "The first of the seeds; the others follow it.")
    private static let count = Option(
        "--count", default: 1_000, parse: .integer(in: 1...Int.max), summary: "How many seeds.")
    private static let seconds = Option<Int?>(
        "--seconds", parse: .integer(in: 1...1_000_000),
        summary: "Start no seed after this many seconds. Without --first, the seeds are fresh.")
    private static let jobs = Option(
        "--jobs", default: ProcessInfo.processInfo.activeProcessorCount,
        parse: .integer(in: 1...256), summary: "How many seeds run at once.")
    private static let fault = Option<ClusterFault?>(
        "--with", valueName: "FAULT", parse: .choice,
        summary: "Make this fault happen in every seed.")
    private static let states = Option(
        "--states", default: SampleStates.journal, parse: .choice,
        summary: "What the nodes host.")
    private static let world = Option<SimulationWorld?>(
        "--world", valueName: "WORLD", parse: .choice,
        summary: "Give every seed a world of this shape. If omitted, each has its own.")
    private static let logLimit = Option<Int?>(
        "--log-limit", valueName: "BYTES", parse: .integer(in: 1...Int.max),
        summary: "Bound the logs on disks. If omitted, no log is bounded.")
    private static let regressions = Flag(
        "--regressions", summary: "Run the regression seeds, and nothing else.")
    private static let fresh = Flag(
        "--fresh", summary: "Begin at a seed that nobody has chosen; it is printed first.")
    private static let marks = Flag(
        "--all-marks", summary: "Fail if a mark was never reached.")
    private static let planted = Flag(
        "--expect-violation",
        summary: "Succeed only when a violation is found: for code with a planted bug.")

    private static let program = Program(
        Command(
            "conflux-simulate",
            summary: "Simulate whole clusters under faults, and check every promise.",
            discussion: """
                One seed decides everything that happens in one run. A seed that fails is printed; \
                --seed shows what happens in it, line by line.

                Exit codes: 0 as expected; 1 not; 64 wrong usage; 74 the output can't be written.
                """,
            parameters: [
                seed, first, fresh, count, seconds, jobs, states, world, fault, logLimit,
                regressions, marks, planted,
            ],
            examples: [
                .init("A thousand seeds", "conflux-simulate"),
                .init("What happens in one of them", "conflux-simulate --seed 42"),
                .init("Fresh seeds for an hour", "conflux-simulate --seconds 3600"),
            ]), version: ConfluxRelease.version)

    static func main() -> Int32 {
        do throws(UsageError) {
            switch try program.parse(try arguments()) {
            case .show(let text):
                tell(text)
                return 0
            case .run(let invocation): return run(invocation)
            }
        } catch {
            complain(error.description)
            return 64
        }
    }

    /// The arguments of this process.
    private static func arguments() throws(UsageError) -> [String] {
        do throws(ProcessWords.Fault) {
            var arguments: [String] = []
            for word in ProcessWords.arguments(UnsafePointer(CommandLine.unsafeArgv)) {
                arguments.append(try word.get())
            }
            return arguments
        } catch {
            throw program.usageError("\(error)")
        }
    }

    private static func run(_ invocation: Invocation) -> Int32 {
        var campaign = Campaign(
            first: UInt64(invocation[first]), count: UInt64(invocation[count]),
            jobs: invocation[jobs], states: invocation[states], world: invocation[world],
            fault: invocation[fault], logLimitBytes: invocation[logLimit].map(UInt64.init),
            endsWithFirst: invocation[planted])
        if invocation[regressions] { return runRegressions() }
        if let seed = invocation[seed] { return replay(campaign.simulation(of: UInt64(seed))) }
        var isFresh = invocation[fresh]
        if let seconds = invocation[seconds] {
            campaign.deadline = Date(timeIntervalSinceNow: Double(seconds))
            campaign.count = .max
            isFresh = isFresh || invocation[first] == 1
        }
        if isFresh {
            campaign.first = .random(in: 0...(1 << 48))
            tell("simulation: fresh seeds: --first \(campaign.first)\(campaign.options)")
        }
        if invocation[planted] { return tellPlanted(campaign.run()) }
        let (first, options) = (campaign.first, campaign.options)
        let result = campaign.run { report in
            tell("\(report); replay: conflux-simulate --seed \(report.seed)\(options)")
        }
        tellMarks(result.marks)
        let missed = result.marks.missed(isBounded: campaign.logLimitBytes != nil)
            .map(\.rawValue)
        if !missed.isEmpty { tell("never reached: \(missed.joined(separator: " "))") }
        for group in result.findings.sorted {
            let seeds = group.reports.map { String($0.seed) }.joined(separator: " ")
            tell("found \(group.count) times: \(group.pattern)\n  seeds \(seeds)")
        }
        let isComplete = missed.isEmpty || !invocation[marks]
        let verdict =
            !result.findings.isEmpty
            ? "FAILED, \(result.findings.count) violations of \(result.findings.sorted.count) kinds"
            : isComplete ? "passed" : "FAILED, marks were missed"
        let rate = Double(result.seeds) / max(result.seconds, 0.001)
        tell(
            "simulation: \(verdict): \(result.seeds) seeds from \(first)\(options), "
                + "\(result.steps) steps, \(Int(result.seconds)) s, "
                + "\((rate * 10).rounded() / 10) seeds/s")
        return isComplete && result.findings.isEmpty ? 0 : 1
    }

    /// Runs the regressions.
    private static func runRegressions() -> Int32 {
        var failures = 0
        for regression in Regression.all {
            let report = regression.simulation.run()
            guard report.violation != nil else { continue }
            failures += 1
            tell("\(report); replay: conflux-simulate --seed \(report.seed)\(regression.options)")
            tell("  found before: \(regression.cause)")
        }
        let count = Regression.all.count
        tell(
            failures == 0
                ? "simulation: passed: \(count) regression seeds"
                : "simulation: FAILED: \(failures) of \(count) regression seeds")
        return failures == 0 ? 0 : 1
    }

    /// Prints a line without buffering, even into a pipe. Ends the process if it can't be written.
    private static func tell(_ line: String) {
        var rest = Array((line + "\n").utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno != EINTR {
                let reason = SystemFailure(errno).reason(
                    advice: "Give the program an output that it can write.")
                complain("conflux-simulate: Standard output can't be written: \(reason)")
                exit(74)
            }
        }
    }

    private static func complain(_ line: String) {
        // If nobody reads the diagnostics, nobody can be told.
        try? FileHandle.standardError.write(contentsOf: Data((line + "\n").utf8))
    }

    private static func replay(_ simulation: Simulation) -> Int32 {
        var simulation = simulation
        simulation.isTracing = true
        tell("\(simulation.plan)")
        let report = simulation.run()
        for line in report.trace { tell(line) }
        tell("\(report)")
        return report.violation == nil ? 0 : 1
    }

    private static func tellPlanted(_ result: Campaign.Result) -> Int32 {
        guard let report = result.findings.first else {
            tell("no violation in \(result.seeds) seeds")
            return 1
        }
        tell("found after \(result.seeds) seeds: \(report)")
        return 0
    }

    private static func tellMarks(_ marks: Marks) {
        for (mark, count) in marks.counts.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            tell("mark \(mark.rawValue) \(count)")
        }
    }
}

exit(Simulate.main())
