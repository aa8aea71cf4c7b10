import Conflux

/// A deterministic test of states, and of Conflux itself: it runs many processes in one value, under faults,
/// and checks every promise at every step.
///
/// **The problem.** Coincidences break replicated systems: a process dies between two effects, a message
/// overtakes another, a disk answers too late. Tests with real processes meet few of them, and never the same
/// one twice.
///
/// **The design.** One seed decides everything. The production machines, outbox, applier and stores run on a
/// simulated network, disk and clock (``SimulationPlan`` says how hostile they are). In the safety phase no
/// promise may be broken, whatever fails. Then faults end, and in the liveness phase everything must become
/// current within a bounded simulated time.
///
/// ```swift
/// let stock = SimulatedState.model(Stock.self) { random in .take(amount: random.int(in: 1...3)) }
/// for seed in 1...200 {
///     let report = Simulation(seed: UInt64(seed), states: [stock]).run()
///     #expect(report.violation == nil, "\(report)")
/// }
/// ```
///
/// A nondeterministic reducer, for example one that depends on a clock or on the order of a `Set`, shows up
/// as a violation of P1.
public struct Simulation: Sendable {
    /// The seed of all random choices.
    public let seed: UInt64
    /// How hostile the world is.
    public var plan: SimulationPlan
    /// The states that nodes host.
    public var states: [SimulatedState]
    /// Makes the program of a process; nil if there is none.
    public var program: (@Sendable (_ place: Int) -> any SimulatedProgram)?
    /// Whether the report has a trace of what happened, one line for each event.
    public var isTracing = false
    /// The most steps. More are a violation, since something does not end.
    public var stepsMax = 400_000

    private var random: SimulationRandom

    /// Makes a simulation. It does not run yet.
    ///
    /// - Parameters:
    ///   - seed: The seed of all random choices.
    ///   - states: The states that nodes host.
    ///   - world: The shape of the world; drawn from the seed by default.
    ///   - plan: How hostile the world is; drawn from the seed, for that shape, by default.
    ///   - duration: How long faults last at least, in simulated time: for a rule of 30 seconds, a few minutes.
    ///   - program: Makes the program of a process that starts at a place: 0, 1, 2 … If there is one, faults are rarer in the
    ///     drawn plan, and nothing takes back entries that were acknowledged: no log loses its end, no store is dropped, no
    ///     entry is skipped. Once faults have ended, programs run for ten seconds more.
    public init(
        seed: UInt64, states: [SimulatedState] = [.journal], world: SimulationWorld? = nil,
        plan: SimulationPlan? = nil, lasting duration: Duration = .zero,
        program: (@Sendable (_ place: Int) -> any SimulatedProgram)? = nil
    ) {
        self.program = program
        self.seed = seed
        self.states = states
        random = SimulationRandom(seed: seed)
        var planning = random.fork()
        var drawn = SimulationPlan(drawnFrom: &planning, world: world ?? SimulationWorld(of: seed))
        drawn.drawDamage(of: seed)
        drawn.drawDispatchers(of: seed)
        drawn.drawPrograms(of: seed)
        if program != nil {
            drawn.suitPrograms(lasting: duration)
            stepsMax *= max(1, duration.microseconds / 10_000_000)
        }
        self.plan = plan ?? drawn
        self.plan.last(for: duration)
    }

    /// Runs it on the calling thread, without other threads or real time.
    ///
    /// - Returns: The report.
    public func run() -> SimulationReport {
        let cluster = SimulatedCluster(
            plan: plan, states: states, makeProgram: program, random: random,
            isTracing: isTracing)
        cluster.begin()
        run(cluster, for: plan.faultsFor, stepsMax: plan.hostileStepsMax)
        if cluster.violation == nil { recover(cluster) }
        return SimulationReport(
            seed: seed, steps: cluster.stepCount, simulated: cluster.now, marks: cluster.marks,
            violation: cluster.truth.replays.isMisled ? nil : cluster.violation,
            trace: cluster.trace.lines)
    }

    /// Lets nodes dispatch until everything that needs entries has happened.
    private func settle(_ cluster: SimulatedCluster) {
        // A program has time to end what it began.
        let least = cluster.now + .seconds(program == nil ? 2 : 10)
        let most = cluster.now + plan.recoveryMax / 2
        var lacking: String? = ""
        while cluster.violation == nil, lacking != nil || cluster.now < least {
            guard cluster.now < most, cluster.stepCount < stepsMax, cluster.step() else {
                cluster.fail(
                    "liveness",
                    "\(plan.recoveryMax / 2) after the last fault: "
                        + (lacking ?? "the steps never end"))
                return
            }
            if cluster.stepCount % 64 == 0, cluster.now >= least {
                lacking = cluster.whatTakesEntries
            }
        }
        endDispatching(cluster)
    }

    /// The feed loses the last entries, so that a node that waits for nothing only learns of them from a beat
    /// (rule 6).
    private func endDispatching(_ cluster: SimulatedCluster) {
        cluster.isFeedLost = true
        run(cluster, for: .milliseconds(300))
        cluster.isBusy = false
        run(cluster, for: .milliseconds(300))
        cluster.isFeedLost = false
    }

    private func run(
        _ cluster: SimulatedCluster, for duration: Duration, stepsMax: Int = .max
    ) {
        let until = cluster.now + duration
        let stepsMax = min(stepsMax, self.stepsMax)
        while cluster.violation == nil, cluster.now < until, cluster.stepCount < stepsMax,
            cluster.step()
        {}
    }

    /// The liveness phase.
    private func recover(_ cluster: SimulatedCluster) {
        cluster.calmDown()
        let deadline = cluster.now + plan.recoveryMax
        settle(cluster)
        var missing = cluster.whatIsMissing
        while missing != nil {
            guard cluster.violation == nil else { return }
            guard cluster.now < deadline, cluster.stepCount < stepsMax, cluster.step() else {
                cluster.fail(
                    "liveness",
                    "not current \(plan.recoveryMax) after the last fault: "
                        + (missing ?? "the steps never end"))
                return
            }
            if cluster.stepCount % 8 == 0 { missing = cluster.whatIsMissing }
        }
        guard cluster.violation == nil else { return }
        do throws(Violation) {
            try cluster.checkEnd()
        } catch {
            cluster.fail(error)
        }
    }
}

/// The result of a simulation.
public struct SimulationReport: Sendable, CustomStringConvertible {
    /// The seed of all random choices.
    public let seed: UInt64
    /// The number of events.
    public let steps: Int
    /// How long it took in simulated time.
    public let simulated: Duration
    /// The marks that were reached.
    public let marks: Marks
    /// The promise that was broken, if one was.
    public let violation: Violation?
    /// What happened, one line for each event, if ``Simulation/isTracing`` was set.
    public let trace: [String]

    /// A summary in a line or two.
    public var description: String {
        let size = "\(steps) steps, \(simulated.text) s simulated"
        guard let violation else { return "seed \(seed): all promises kept (\(size))" }
        return "seed \(seed): \(violation) (after \(size))"
    }
}
