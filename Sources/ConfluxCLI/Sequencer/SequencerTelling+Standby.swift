import ConfluxNode
import ConfluxProtocol
import ConfluxSequencer
import ConfluxWorker

/// Prints what happens to a standby.
extension SequencerTelling {
    func tell(_ standing: SequencerEvent.Standing, _ last: SequenceNumber) {
        if let failure = standing.failure {
            environment.announce(
                "logFailed",
                ["message": .string(failure), "pauseMilliseconds": .number(UInt64(500))],
                text: "the log can't be followed; trying again: \(failure)")
            return
        }
        var fields: JSONObject = [
            "address": .string(sequencer.address), "feed": .string(sequencer.feedAddress),
            "last": .number(last),
        ]
        fields["server"] = standing.server.map { .string($0) }
        fields["http"] = http.map { .string($0) }
        fields["place"] = place.map { .string($0) }
        let server =
            standing.server.map { "\($0) serves" } ?? "no other sequencer is known to serve"
        let site = place.map { " for the log at \($0)" } ?? ""
        environment.announce(
            "standby", fields,
            text: "standby at \(sequencer.address)\(site), which ends at \(last): \(server)")
    }

    func tell(_ reason: SequencerEnd) {
        switch reason {
        case .handedOver(let successor):
            environment.announce(
                "handedOver", ["to": .string(successor)], text: "handed over to \(successor)")
        case .superseded, .stopped, .logFailed, .logDamaged, .logMoved:
            environment.announce(
                "superseded", text: "another sequencer has taken over; this one stands by")
        }
    }
}
