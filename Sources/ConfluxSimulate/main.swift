import ConfluxArguments
import ConfluxSimulation
import Foundation

/// `conflux-simulate`: runs simulated clusters, many seeds or one.
enum Simulate {
    private static let seed = Option<Int?>(
        "--seed", valueName: "SEED", parse: .integer(in: 0...Int.max),
        summary: "Run this seed alone, and tell what happens in it.")
    private static let first = Option(
        "--first", valueName: "SEED", default: 1, parse: .integer(in: 0...Int.max),
        summary: "The first of the seeds; the others follow it.")
    private static let count = Option(
        "--count", default: 1_000, parse: .integer(in: 1...Int.max), summary: "How many seeds.")
    private static let seconds = Option<Int?>(
        "--seconds", parse: .integer(in: 1...1_000_000),
        summary: "Begin no seed after so long; the seeds are fresh ones unless --first is given.")
    private static let jobs = Option(
        "--jobs", default: ProcessInfo.processInfo.activeProcessorCount,
        parse: .integer(in: 1...256), summary: "How many seeds run at once.")
    private static let fault = Option<ClusterFault?>(
        "--with", valueName: "FAULT", parse: .choice,
        summary: "Have this happen in every seed, also where it was not drawn.")
    private static let marks = Flag(
        "--all-marks", summary: "Fail when something worth reaching was never reached.")
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

                Exit codes: 0 as expected; 1 not; 64 wrong usage.
                """,
            parameters: [seed, first, count, seconds, jobs, fault, marks, planted],
            examples: [
                .init("A thousand seeds", "conflux-simulate"),
                .init("What happens in one of them", "conflux-simulate --seed 42"),
                .init("Fresh seeds for an hour", "conflux-simulate --seconds 3600"),
            ]), version: "0.1.0")

    static func main() -> Int32 {
        do throws(UsageError) {
            let arguments = Array(CommandLine.arguments.dropFirst())
            switch try program.parse(
                arguments, environment: ProcessInfo.processInfo.environment)
            {
            case .show(let text):
                print(text)
                return 0
            case .run(let invocation): return run(invocation)
            }
        } catch {
            FileHandle.standardError.write(Data((error.description + "\n").utf8))
            return 64
        }
    }

    private static func run(_ invocation: Invocation) -> Int32 {
        var campaign = Campaign(
            first: UInt64(invocation[first]), count: UInt64(invocation[count]),
            jobs: invocation[jobs], fault: invocation[fault])
        if let seed = invocation[seed] { return replay(campaign.simulation(of: UInt64(seed))) }
        if let seconds = invocation[seconds] {
            campaign.deadline = Date(timeIntervalSinceNow: Double(seconds))
            campaign.count = .max
            if invocation[first] == 1 { campaign.first = .random(in: 0...(1 << 48)) }
        }
        let result = campaign.run()
        if invocation[planted] { return tellPlanted(result) }
        tellMarks(result.marks)
        let missed = result.marks.missed.map(\.rawValue)
        if !missed.isEmpty { print("never reached: \(missed.joined(separator: " "))") }
        let rate = Int(Double(result.seeds) / max(result.seconds, 0.001))
        let size =
            "\(result.seeds) seeds from \(campaign.first), \(result.steps) steps, "
            + "\(Int(result.seconds)) s, \(rate) seeds/s"
        if let report = result.violation {
            let with = campaign.fault.map { " --with \($0)" } ?? ""
            print(
                "simulation: FAILED: \(report); replay: conflux-simulate --seed \(report.seed)\(with)"
            )
            return 1
        }
        let isComplete = missed.isEmpty || !invocation[marks]
        print("simulation: \(isComplete ? "passed" : "FAILED, marks were missed"): \(size)")
        return isComplete ? 0 : 1
    }

    private static func replay(_ simulation: Simulation) -> Int32 {
        var simulation = simulation
        simulation.isTracing = true
        print("\(simulation.plan)")
        let report = simulation.run()
        for line in report.trace { print(line) }
        print(report)
        return report.violation == nil ? 0 : 1
    }

    private static func tellPlanted(_ result: Campaign.Result) -> Int32 {
        guard let report = result.violation else {
            print("no violation in \(result.seeds) seeds")
            return 1
        }
        print("found after \(result.seeds) seeds: \(report)")
        return 0
    }

    private static func tellMarks(_ marks: Marks) {
        for (mark, count) in marks.counts.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            print("mark \(mark.rawValue) \(count)")
        }
    }
}

exit(Simulate.main())
