import ConfluxVocabulary

/// A request for the past of a store.
struct PastRequest: Sendable {
    enum Verb: Sendable {
        /// At the log's end, if there is no number.
        case state(at: SequenceNumber?, without: SequenceNumber?)
        /// From the state with the action that is left out, if there is no number to begin with. With neither, from the one
        /// before the entry.
        case difference(from: SequenceNumber?, to: SequenceNumber, without: SequenceNumber?)
        case entries(after: SequenceNumber?, before: SequenceNumber?, limit: Int)
    }

    let store: StoreName
    let verb: Verb
    let timeout: Duration

    private init(_ store: StoreName, _ verb: Verb, _ query: inout Query) throws(Problem) {
        self.store = store
        self.verb = verb
        timeout = min(try query.timeout(), GatewayBounds.pastTimeMax)
    }

    /// The state at a number; nil if the request asks for the present state.
    static func state(
        of store: StoreName, _ query: inout Query
    ) throws(Problem) -> PastRequest? {
        let (at, without) = (try query.sequence("at"), try query.sequence("without"))
        guard at != nil || without != nil else { return nil }
        // What the log has by now does not change a state of the past.
        _ = try query.sequence("atLeast")
        return try PastRequest(
            store, .state(at: at, without: without), &query)
    }

    /// The difference between two states.
    static func difference(
        of store: StoreName, _ query: inout Query
    ) throws(Problem) -> PastRequest {
        let (from, without) = (try query.sequence("from"), try query.sequence("without"))
        guard let to = try query.sequence("to") else {
            throw .invalid("Give 'to': the number at which the later state is.")
        }
        let former = without == nil ? SequenceNumber(max(to.rawValue, 1) - 1) : nil
        return try PastRequest(
            store, .difference(from: from ?? former, to: to, without: without), &query)
    }

    /// Some actions, with what the store made of them.
    static func entries(of store: StoreName, _ query: inout Query) throws(Problem) -> PastRequest {
        let (after, before) = (try query.sequence("after"), try query.sequence("before"))
        let limit = try query.number("limit") ?? UInt64(GatewayBounds.pastEntries)
        guard (1...UInt64(GatewayBounds.pastEntriesMax)).contains(limit) else {
            throw .invalid("'limit' is a number from 1 to \(GatewayBounds.pastEntriesMax).")
        }
        return try PastRequest(
            store, .entries(after: after, before: before, limit: Int(limit)), &query)
    }
}

extension Query {
    fileprivate mutating func sequence(_ name: String) throws(Problem) -> SequenceNumber? {
        try number(name).map { SequenceNumber($0) }
    }
}
