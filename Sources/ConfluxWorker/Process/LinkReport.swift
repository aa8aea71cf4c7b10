import ConfluxNode

/// What a node's event says about the way to its sequencer: that it has failed, or works again.
struct LinkReport {
    /// The event's name.
    let event: String
    /// The event's fields.
    let fields: JSONObject
    /// The line for people.
    let text: String

    /// Makes the report of an event; nil if the event is about something else.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - address: The address that the node was given.
    init?(_ event: NodeEvent, to address: String) {
        switch event {
        case .joined(let log, let epoch, let incarnation):
            self.init(
                "joined",
                [
                    "epoch": .number(epoch), "incarnation": .number(incarnation),
                    "log": .string(log.description),
                ], text: "joined log \(log) in epoch \(epoch) as node \(incarnation)")
        case .disconnected:
            self.init(
                "disconnected",
                text:
                    "disconnected: the sequencer at \(address) does not answer; trying to reach it again"
            )
        case .unreachable(let message):
            self.init("unreachable", ["message": .string(message)], text: message)
        case .connectionRefused(let message):
            self.init("connectionRefused", ["message": .string(message)], text: message)
        case .sequencerNotServing(let message):
            self.init(
                "sequencerNotServing", ["message": .string(message)],
                text: "the sequencer does not serve: \(message)")
        case .reconnected(let epoch):
            self.init(
                "reconnected", ["epoch": .number(epoch)], text: "reconnected in epoch \(epoch)")
        case .feedFellBack(let former, let present, let message):
            self.init(
                "feedFellBack",
                ["from": .string(former), "message": .string(message), "to": .string(present)],
                text: message)
        case .feedRestored(let address):
            self.init(
                "feedRestored", ["to": .string(address)],
                text: "the feed comes from \(address) again")
        case .heldUp, .staleSequencer, .historyLost, .sessionForgotten, .missed, .logDamaged,
            .storeDropped, .storeStopped, .diverged, .bridgeStopped, .crashJournal,
            .unreadableFrame, .upgradeFailed, .closed:
            return nil
        }
    }

    private init(_ event: String, _ fields: JSONObject = [:], text: String) {
        self.event = event
        self.fields = fields
        self.text = text
    }
}
