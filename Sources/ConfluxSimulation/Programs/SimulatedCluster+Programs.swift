/// The user's programs: when they are called, and what their processes do for them.
extension SimulatedCluster {
    /// The time between two calls of a program that nothing happens to.
    private static let programPause = Duration.milliseconds(500)

    /// A process starts, and makes its program anew.
    func beginProgram(on node: SimulatedNode) {
        guard let makeProgram else { return }
        node.run = ProgramRun(makeProgram(node.slot), random: random.fork())
        callProgram(of: node, after: .zero)
    }

    /// Something may have changed for the program. A process reacts at once, or as late as others dispatch. What changes until
    /// then changes nothing about that: a program that always dispatches must not take all of the time.
    func wakeProgram(of node: SimulatedNode) {
        guard let run = node.run, !run.isWoken else { return }
        run.isWoken = true
        let latest = min(max(plan.dispatchEvery, .milliseconds(100)), Self.programPause)
        callProgram(
            of: node,
            after: random.duration(
                in: .zero...(random.chance(0.25) ? .milliseconds(2) : latest)))
    }

    private func callProgram(of node: SimulatedNode, after delay: Duration) {
        guard let run = node.run else { return }
        let at = now + delay
        if let next = run.nextAt, next <= at { return }
        run.nextAt = at
        timeline.schedule(.runProgram(process: node.process), at: at)
    }

    /// Calls the program.
    func runProgram(_ node: SimulatedNode) throws(Violation) {
        // It may have been called earlier instead.
        guard let run = node.run, let at = run.nextAt, at <= now else { return }
        (run.nextAt, run.isWoken) = (nil, false)
        let pause = run.claims.isEmpty ? Self.programPause : settings.silenceMax / 8
        callProgram(of: node, after: min(Self.programPause, pause))
        guard isBusy, !node.isLeaving else { return }
        tendClaims(run, node)
        openAll(on: node)
        var process = SimulatedProcess(cluster: self, node: node, own: run)
        run.program.run(on: &process)
        if let violation { throw violation }
        try turn(node)
    }

    /// The process opens again what it has lost, in no hurry.
    private func openAll(on node: SimulatedNode) {
        for state in node.states where node.bridges.contains(where: { $0.name == state.name }) {
            for name in state.stores where node.store(name) == nil && random.chance(0.1) {
                open(name, state, on: node)
            }
        }
    }
}
