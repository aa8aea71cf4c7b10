import ConfluxLog
import ConfluxProtocol
import ConfluxSequencer
import ConfluxVocabulary

/// What a sequencer's herald thread does.
extension SimulatedCluster {
    /// Begins the herald of a tenure.
    func beginHerald(of sequencer: SimulatedSequencer) {
        guard let (epoch, herald) = sequencer.answers.herald, let standby = sequencer.standby else {
            return
        }
        sequencer.answers.herald = nil
        sequencer.standby?.claimed = epoch
        sequencer.standby?.herald = SimulatedHerald(
            herald: herald,
            course: HeraldCourse(
                of: epoch, at: standby.course.candidacy.address,
                begun: sequencer.clock.reading(at: now)))
        schedule(.say(process: sequencer.process, epoch), after: .zero)
    }

    /// Says that the tenure serves.
    func say(_ sequencer: SimulatedSequencer, _ epoch: Epoch) {
        guard var herald = sequencer.standby?.herald, herald.course.epoch == epoch,
            herald.answer == nil
        else { return }
        let reading = sequencer.clock.reading(at: now)
        // A paused sequencer is paused with all its threads.
        guard let word = herald.course.say(at: reading, turned: reading) else { return }
        slowness = .zero
        herald.answer = (
            reading, Result { () throws(LogError) in try herald.herald.say(word) }
        )
        sequencer.standby?.herald = herald
        // One of its calls takes about two seconds at most.
        schedule(
            .said(process: sequencer.process, epoch), after: logLatency + min(slowness, .seconds(2))
        )
    }

    /// Takes the outcome of saying the word.
    func heard(_ sequencer: SimulatedSequencer, _ epoch: Epoch) throws(Violation) {
        guard var herald = sequencer.standby?.herald, herald.course.epoch == epoch,
            let (begun, result) = herald.answer
        else { return }
        herald.answer = nil
        var news: SequencerInput?
        switch result {
        case .success(let words):
            herald.course.said(since: begun)
            news = .standbys(
                words.map { SequencerPlace(address: $0.address, isServing: false, last: $0.last) })
        case .failure(let error):
            let end = herald.course.failed(
                error, at: sequencer.clock.reading(at: now),
                confirmed: sequencer.answers.confirmedAt)
            if case .logFailed = end { marks.hit(.tenureGivenUp) }
            news = end.map { .deposed($0) }
        }
        sequencer.standby?.herald = herald
        let due = sequencer.clock.time(of: herald.course.dueAt)
        timeline.schedule(.say(process: sequencer.process, epoch), at: max(now, due))
        if let news, sequencer.machine.epoch == epoch { try handle(news, sequencer) }
    }

    /// Says that the tenure is over, so that others need not find out by themselves.
    func leave(_ sequencer: SimulatedSequencer, to successor: String?) {
        guard var herald = sequencer.standby?.herald else { return }
        sequencer.standby?.herald = nil
        let word = herald.course.leave(to: successor)
        do throws(LogError) {
            _ = try herald.herald.say(word)
        } catch {
            trace.note(now, "sequencer \(sequencer.process) can't say that it leaves: \(error)")
        }
    }
}
