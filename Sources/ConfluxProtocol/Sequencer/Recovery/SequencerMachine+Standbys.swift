import ConfluxVocabulary

/// The other sequencers of this log. What is known of them is a hint: the log alone decides who has
/// the term (rule 1).
extension SequencerMachine {
    /// This sequencer, and the standbys.
    var sequencers: [SequencerPlace] {
        [SequencerPlace(address: settings.address, isServing: true, last: term.last)] + standbys
    }

    /// The standby that has followed the log furthest; nil if there is none.
    public var bestStandby: SequencerPlace? { standbys.max { $0.last < $1.last } }

    /// Hands over to a standby. Nothing more is admitted. What was admitted is committed and gets
    /// its receipts, and then the term ends.
    mutating func handOver(
        to address: String?, asked question: UInt64, by asker: ConnectionID, at now: Moment,
        into effects: inout [SequencerEffect]
    ) {
        let chosen = address == nil ? bestStandby : standbys.first { $0.address == address }
        guard let chosen else {
            let known = standbys.map(\.address).joined(separator: ", ")
            let text =
                standbys.isEmpty
                ? "no other sequencer is known to stand by for this log: start one, or try again in a second"
                : "no sequencer with that address stands by; these do: \(known)"
            let answer = Answer(
                number: question, body: .failed(.noStandby, message: text))
            reply(answer, to: asker, into: &effects)
            return
        }
        let answer = Answer(
            number: question, body: .handingOver(to: chosen.address))
        reply(answer, to: asker, into: &effects)
        successor = chosen.address
        stop(at: now, into: &effects)
    }
}
