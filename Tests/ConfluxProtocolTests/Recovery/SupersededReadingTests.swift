import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// A newer term may change the log while an older one reads it.
struct SupersededReadingTests {
    /// A sequencer that reads a log, whose first commits are discarded meanwhile.
    private func reading() -> (machine: SequencerMachine, effects: [SequencerEffect]) {
        var cluster = Cluster.twoNodes()
        for text in ["a", "b", "c"] { cluster.dispatch([text], to: "list/*", from: 1) }
        var machine = SequencerMachine(settings: cluster.settings)
        var effects: [SequencerEffect] = []
        let claim = ClaimedLog(
            log: cluster.disk.id, epoch: cluster.disk.epoch.raised(by: 1),
            last: cluster.disk.last, lastEpoch: cluster.disk.lastEpoch,
            floor: cluster.disk.floor, nonce: Identifier(high: 3, low: 3))
        for input in [
            .claimed(claim), .checkpointRead(.none),
            .logRead(cluster.disk.bodies.dropFirst(3).map(\.body)),
        ] as [SequencerInput] {
            effects.removeAll()
            machine.handle(input, at: cluster.moment, into: &effects)
        }
        return (machine, effects)
    }

    @Test(arguments: [true, false])
    func `a log that looks damaged is so only if it confirms the term that reads it`(
        _ isSuperseded: Bool
    ) {
        var (machine, effects) = reading()
        #expect(effects == [.confirmTerm])
        effects.removeAll()
        machine.handle(
            isSuperseded ? .logFailed(.superseded) : .termConfirmed,
            at: Moment(monotonic: .zero, wall: Timestamp(0)), into: &effects)
        guard case .end(let end)? = effects.last, effects.count == 1 else {
            Issue.record("it went on: \(effects)")
            return
        }
        let isDamaged = if case .logDamaged = end { true } else { false }
        #expect(isSuperseded ? end == .superseded : isDamaged)
    }
}
