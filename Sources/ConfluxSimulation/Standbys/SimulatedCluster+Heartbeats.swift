import ConfluxLog
import ConfluxProtocol
import ConfluxSequencer
import ConfluxVocabulary

/// What a sequencer's heartbeat thread does.
extension SimulatedCluster {
    /// Begins the heartbeat of a term.
    func beginHeartbeat(of sequencer: SimulatedSequencer) {
        guard let (epoch, heartbeat) = sequencer.answers.heartbeat, let standby = sequencer.standby
        else {
            return
        }
        sequencer.answers.heartbeat = nil
        sequencer.standby?.claimed = epoch
        sequencer.standby?.heartbeat = SimulatedHeartbeat(
            heartbeat: heartbeat,
            course: HeartbeatCourse(
                of: epoch, at: standby.course.candidacy.address,
                begun: sequencer.clock.reading(at: now)))
        schedule(.say(process: sequencer.process, epoch), after: .zero)
    }

    /// Says that the term serves.
    func say(_ sequencer: SimulatedSequencer, _ epoch: Epoch) {
        guard var heartbeat = sequencer.standby?.heartbeat, heartbeat.course.epoch == epoch,
            heartbeat.answer == nil
        else { return }
        let reading = sequencer.clock.reading(at: now)
        // A paused sequencer is paused with all its threads.
        guard let word = heartbeat.course.say(at: reading, turned: reading) else { return }
        slowness = .zero
        heartbeat.answer = (
            reading, Result { () throws(LogError) in try heartbeat.heartbeat.say(word) }
        )
        sequencer.standby?.heartbeat = heartbeat
        // One of its calls takes about two seconds at most.
        schedule(
            .said(process: sequencer.process, epoch), after: logLatency + min(slowness, .seconds(2))
        )
    }

    /// Takes the outcome of saying the word.
    func heard(_ sequencer: SimulatedSequencer, _ epoch: Epoch) throws(Violation) {
        guard var heartbeat = sequencer.standby?.heartbeat, heartbeat.course.epoch == epoch,
            let (begun, result) = heartbeat.answer
        else { return }
        heartbeat.answer = nil
        var news: SequencerInput?
        switch result {
        case .success(let words):
            heartbeat.course.said(since: begun)
            news = .standbys(
                words.map { SequencerPlace(address: $0.address, isServing: false, last: $0.last) })
        case .failure(let error):
            let end = heartbeat.course.failed(
                error, at: sequencer.clock.reading(at: now),
                confirmed: sequencer.answers.confirmedAt)
            if case .logFailed = end { marks.hit(.termGivenUp) }
            news = end.map { .deposed($0) }
        }
        sequencer.standby?.heartbeat = heartbeat
        let due = sequencer.clock.time(of: heartbeat.course.dueAt)
        timeline.schedule(.say(process: sequencer.process, epoch), at: max(now, due))
        if let news, sequencer.machine.epoch == epoch { try handle(news, sequencer) }
    }

    /// Says that the term is over, so that others need not find out by themselves.
    func leave(_ sequencer: SimulatedSequencer, to successor: String?) {
        guard var heartbeat = sequencer.standby?.heartbeat else { return }
        sequencer.standby?.heartbeat = nil
        let word = heartbeat.course.leave(to: successor)
        do throws(LogError) {
            _ = try heartbeat.heartbeat.say(word)
        } catch {
            trace.note(now, "sequencer \(sequencer.process) can't say that it leaves: \(error)")
        }
    }
}
