import ConfluxVocabulary

/// What a node tells its sequencer from time to time: how far it has come, and so that it is alive.
extension ReplicaMachine {
    /// When the next progress is due: soon if there is news, otherwise as a sign of life.
    var progressDue: Duration {
        guard let limits = welcome?.limits else { return .zero }
        // How much of `live` is applied is learnt when the progress is due.
        let isNews =
            live ?? applied > progressSent || (isKeyed && submissions.reported > settledSent)
        let pause = isNews ? limits.beatInterval : limits.silenceMax / 4
        return progressSentAt + max(pause, settings.progressPauseMin)
    }

    mutating func sendProgress(
        at now: Duration, settled: UInt64, into effects: inout [ReplicaEffect]
    ) {
        progressSent = applied
        progressSentAt = now
        settledSent = max(settledSent, settled)
        effects.append(
            .send(
                .progress(
                    Progress(
                        applied: applied, settled: settled,
                        stopped: stopped.values.sorted { $0.store < $1.store }))))
    }
}
