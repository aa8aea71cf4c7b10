import ConfluxVocabulary

/// The bounds of a gateway.
enum GatewayBounds {
    /// Copies of a store's state that wait to be encoded. *At the bound* later actions share a copy, and so a change.
    static let copiesMax = 16
    /// Actions of a store that wait for its queue. *At the bound* further ones are counted and not kept: those who follow
    /// actions get the state.
    static let actionsMax = 8_192
    /// Actions of a store that are kept together: all of them as long as one is. *At the bound* others begin.
    static let runMax = 256
    /// Requests without an answer, which the keys share. *At the bound* a further one is refused.
    static let requestsMax = 65_536
    /// Sessions under way for dispatches with a key of their own, which the askers share. *At the bound* a further one is
    /// refused.
    static let keyedMax = 64
    /// Parts of a request, with those that name its way back. *At the bound* it is refused.
    static let partsMax = 64
    /// Bytes of a request's id, and of the parts that name its way back: they are kept until it is answered. *At the bound*
    /// it is refused.
    static let routeBytesMax = 4_096
    /// Bytes of a request, besides its action.
    static let requestBytesMax = 64 << 10
    /// Messages that wait for one subscriber, or for one asker. *At the bound* libzmq discards further ones: a subscriber
    /// finds its gap by the numbers, and an asker gets no answer. A message that waits for several takes its memory once.
    static let waitingMax: Int32 = 10_000
    /// Sockets that publish. *At the bound* the gateway does not start.
    static let publicationsMax = 64
    /// Connections over HTTP. *At the bound* a new one ends another, as everywhere (`HTTPServer.connectionsMax`).
    static let connectionsMax = 512
    /// Bytes of a subscription. *At the bound* libzmq ends the connection.
    static let subscriptionBytesMax: Int64 = 1_024
    /// The shortest time between two states that new subscribers of a store are sent, and everybody else with them. Those
    /// who subscribe meanwhile wait for the next one.
    static let statePause = Duration.milliseconds(10)
    /// What is added to that time for each MiB of the states.
    static let statePausePerMiB = Duration.milliseconds(20)
    /// How long a request may take, unless it says otherwise.
    static let timeout = Duration.seconds(10)
    /// The longest time that a request may ask for.
    static let timeoutMax = Duration.seconds(3_600)
    /// Pasts of stores that are made at the same time. *At the bound* others wait for their turn.
    static let pastsMax = 2
    /// Requests for a past that wait for their turn. *At the bound* a further one is refused.
    static let pastsWaitingMax = 32
    /// The longest time that the past of a store may take, whatever time the request has.
    static let pastTimeMax = Duration.seconds(60)
    /// States of the past that are kept, so that whoever goes on from one need not wait. *At the bound* the oldest is
    /// forgotten.
    static let pastsKept = 16
    /// Bytes of these states. *At the bound* the oldest is forgotten.
    static let pastBytesKept = 32 << 20
    /// Entries in one answer. A request for more is refused.
    static let pastEntriesMax = 1_000
    /// The same, unless the request says how many.
    static let pastEntries = 100
    /// How long after the end of its time a dispatch waits to learn whether it could be withdrawn.
    static let withdrawalTime = Duration.milliseconds(750)
}
