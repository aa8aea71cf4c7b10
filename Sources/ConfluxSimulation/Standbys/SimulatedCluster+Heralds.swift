import ConfluxLog
import ConfluxProtocol
import ConfluxVocabulary

/// What the thread of a sequencer does that says who serves.
extension SimulatedCluster {
    /// A tenure has begun.
    func beginHerald(of sequencer: SimulatedSequencer) {
        guard let (epoch, herald) = sequencer.answers.herald, let standby = sequencer.standby else {
            return
        }
        sequencer.answers.herald = nil
        sequencer.standby?.herald = SimulatedHerald(
            herald: herald,
            word: ServingWord(
                epoch: epoch, address: standby.candidacy.address, renewal: 0, standing: .serving),
            saidAt: sequencer.clock.reading(at: now))
        schedule(.say(process: sequencer.process, epoch), after: .zero)
    }

    /// It is said once more.
    func say(_ sequencer: SimulatedSequencer, _ epoch: Epoch) {
        guard var herald = sequencer.standby?.herald, herald.word.epoch == epoch,
            herald.answer == nil
        else { return }
        herald.word.renewal += 1
        slowness = .zero
        let word = herald.word
        let result = Result { () throws(LogError) in try herald.herald.say(word) }
        herald.answer = (sequencer.clock.reading(at: now), result)
        sequencer.standby?.herald = herald
        // A call of it takes a second at most.
        schedule(
            .said(process: sequencer.process, epoch), after: logLatency + min(slowness, .seconds(1))
        )
    }

    /// What came of it is heard.
    func heard(_ sequencer: SimulatedSequencer, _ epoch: Epoch) throws(Violation) {
        guard var herald = sequencer.standby?.herald, herald.word.epoch == epoch,
            let (begun, result) = herald.answer
        else { return }
        herald.answer = nil
        let reading = sequencer.clock.reading(at: now)
        var due = begun + SimulatedHerald.pause
        var news: SequencerInput?
        switch result {
        case .success(let words):
            herald.saidAt = begun
            news = .standbys(
                words.map { SequencerPlace(address: $0.address, isServing: false, last: $0.last) })
        case .failure(let error) where error.code == .superseded:
            due = reading + SimulatedHerald.pause
            news = .deposed(.superseded)
        case .failure(let error):
            due = reading + SimulatedHerald.failurePause
            guard reading - max(herald.saidAt, sequencer.answers.confirmedAt) >= SimulatedHerald.doubtMax else { break }
            marks.hit(.tenureGivenUp)
            due = reading + SimulatedHerald.pause
            news = .deposed(.logFailed(error.message))
        }
        sequencer.standby?.herald = herald
        timeline.schedule(
            .say(process: sequencer.process, epoch), at: max(now, sequencer.clock.time(of: due)))
        if let news, sequencer.machine.epoch == epoch { try handle(news, sequencer) }
    }

    /// Others need not find out by themselves.
    func leave(_ sequencer: SimulatedSequencer, to successor: String?) {
        guard var herald = sequencer.standby?.herald else { return }
        sequencer.standby?.herald = nil
        herald.word.renewal += 1
        herald.word.standing = .left(successor: successor)
        let word = herald.word
        do throws(LogError) {
            _ = try herald.herald.say(word)
        } catch {
            trace.note(now, "sequencer \(sequencer.process) can't say that it leaves: \(error)")
        }
    }
}
