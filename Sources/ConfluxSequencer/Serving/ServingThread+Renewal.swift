import ConfluxProtocol

extension ServingThread {
    /// Serves alone, term after term, for as long as nothing but the log fails.
    ///
    /// - Returns: Why the last term ended.
    func runAlone() -> SequencerEnd {
        jobs.post(.claim(.random()))
        var reason = serveTerm()
        while case .logFailed(let message, let summary) = reason, !isCutOff, !isStopping,
            let pause = renewal.pause(after: .now)
        {
            failure =
                "its log fails: \(summary). It tries again by itself; what it prints says more"
            events(.termFailed(message: message, pause: pause))
            guard rest(for: pause) else {
                reason = isCutOff ? end ?? reason : .stopped
                break
            }
            let tally = machine.tally
            machine = SequencerMachine(settings: machine.settings)
            machine.tally = tally
            gate.ask()
            jobs.post(.renew(.random()))
            reason = serveTerm()
            // That the log fails is known: a term that has served nobody adds nothing.
            if case .logFailed = reason, isStopping, !isServing, !isCutOff { reason = .stopped }
        }
        return reason
    }
}
