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

    /// The thread that applies has reported something.
    mutating func take(
        _ report: ApplyReport, at now: Duration, into effects: inout [ReplicaEffect]
    ) {
        switch report {
        case .ready(let subject, let position, let request):
            ready(subject, through: position, request, at: now, into: &effects)
        case .parked(let subject, let request):
            guard hosting[subject]?.phase.request == request else { return }
            catchUps.leave(subject)
            pumpCatchUps(at: now, into: &effects)
        case .reload(let store): reopen(store, at: now, into: &effects)
        case .stopped(let store): stopped(store, at: now, into: &effects)
        case .digested(let vote):
            hosting[.store(vote.place.store)]?.say(vote)
            if phase == .joined { effects.append(.send(.digest(.vote(vote)))) }
        case .migrated(let migrated):
            if phase == .joined { effects.append(.send(.migrated(migrated))) }
        case .located(let location):
            if phase == .joined { effects.append(.send(.digest(.located(location)))) }
        }
    }
}
