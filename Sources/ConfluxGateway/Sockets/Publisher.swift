import CZeroMQ
import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ

/// Publishes what happens to some of the stores at one address. Confined to the gateway's thread.
///
/// What happens is encoded once for all publishers (``ServedRecords``): each writes its own heads alone.
///
/// libzmq applies subscriptions when they arrive, and tells of each. In each turn this first sends what has happened, then
/// takes the subscriptions, and then sends the state to those topics. So the state that a new subscriber gets is the one
/// after which its next message follows. Those who have subscribed earlier get the state again.
///
/// libzmq's other way, in which the publisher applies subscriptions (`ZMQ_XPUB_MANUAL`), is not used: a peer that sends
/// something else than subscriptions can have them applied to another peer's connection.
///
/// *Invariants*: what is sent of a topic has rising numbers, and each message has the number of the one before. If numbers
/// go back, all connections end. A topic of which new subscribers await the state gets nothing else before that.
final class Publisher {
    /// Where it listens, with the port that the system chose if it was 0.
    let address: String
    private let names: [StoreName]
    private let stores: [any AnyServedStore]
    private let epochs: EpochTable
    private var feeds: [Feed]
    /// nil while its address is not free: see ``renew()``.
    private var socket: LibrarySocket?
    private let makeSocket: () throws(LibraryFailure) -> LibrarySocket
    private var heads = HeadWriter()
    /// How often the socket was to be made anew, and could not; 0 if that is not due.
    private var renewals = 0
    /// How many subscribers may still be told, until the next beat, that nothing matches what they want.
    private var errorsLeft = errorsMax
    private var nextBeat = Duration.zero
    private var beatCount = 0

    /// Where the topics of one store are.
    private struct Feed {
        let topics: [Topic: [UInt8]]
        var cursor = ServedRecords.Cursor()
        /// The state at the cursor; nil before there is one.
        var state: ServedRecords.State?
        /// The number of the last message of each topic.
        var last: [Topic: SequenceNumber] = [:]
        /// The topics that anybody has ever subscribed to.
        var wanted: Set<Topic> = []
        /// The topics of which new subscribers await the state.
        var awaited: Set<Topic> = []
        /// When new subscribers may get the state again: everybody else gets it, too.
        var nextState = Duration.zero
        var ending: String?
        /// Whether something has happened since the last beat.
        var isBeatDue = true
    }

    private static let errorsMax = 10
    private static let beatInterval = Duration.seconds(1)
    /// Each of so many beats names every store.
    private static let fullBeat = 10
    private static let renewalPause = Duration.milliseconds(10)
    private static let renewalsReported = 300

    /// - Parameters:
    ///   - names: The stores that it is for: whoever may read all of them may subscribe.
    ///   - stores: Those of them that are open.
    ///   - epochs: Knows the log.
    ///   - socket: Its socket.
    ///   - address: Where that is bound.
    ///   - makeSocket: Makes another socket, and binds it to the same address.
    init(
        of names: [StoreName], _ stores: [any AnyServedStore], _ epochs: EpochTable,
        on socket: LibrarySocket, at address: String,
        makeSocket: @escaping () throws(LibraryFailure) -> LibrarySocket
    ) {
        self.names = names
        self.stores = stores
        self.epochs = epochs
        self.socket = socket
        self.address = address
        self.makeSocket = makeSocket
        feeds = stores.map { store in
            Feed(
                topics: Dictionary(
                    uniqueKeysWithValues: Topic.allCases.map { ($0, $0.bytes(of: store.name)) }))
        }
    }

    var pointer: UnsafeMutableRawPointer? { socket?.pointer }

    /// Whether these rights allow to read everything that is published here.
    func mayRead(_ rights: Rights) -> Bool {
        names.allSatisfy { rights.allowReading(.store($0)) }
    }

    /// Ends all connections soon, since the keys have changed, or numbers have gone back: see ``renew()``. Subscribers
    /// whose keys may read everything that is published here connect and subscribe again, and get the state.
    func endConnections() { renewals = max(renewals, 1) }

    /// Makes the socket anew, if that is due. The address is free only some time after the former socket was closed: so
    /// this is tried in each turn until it succeeds.
    ///
    /// - Returns: Why it does not succeed, if that takes long.
    func renew() -> LibraryFailure? {
        guard renewals > 0 else { return nil }
        socket?.close()
        socket = nil
        do throws(LibraryFailure) {
            socket = try makeSocket()
            renewals = 0
            return nil
        } catch {
            renewals += 1
            return renewals.isMultiple(of: Self.renewalsReported) ? error : nil
        }
    }

    // MARK: A turn

    func work(at now: Duration) {
        for index in feeds.indices {
            if feeds[index].awaited.isEmpty {
                sendNews(of: index)
            } else if feeds[index].state == nil {
                sendNews(of: index)
                // The first state went to everybody.
                if feeds[index].state != nil { feeds[index].awaited = [] }
            }
        }
        takeSubscriptions()
        sendStates(at: now)
        if now >= nextBeat {
            nextBeat = now + Self.beatInterval
            errorsLeft = Self.errorsMax
            sendBeats()
        }
    }

    /// When it has something to do, though nothing happens.
    func deadline(at now: Duration) -> Duration {
        let turn = renewals > 0 ? min(nextBeat, now + Self.renewalPause) : nextBeat
        return feeds.reduce(turn) { $1.awaited.isEmpty ? $0 : min($0, $1.nextState) }
    }

    private func sendNews(of index: Int) {
        let store = stores[index]
        let news = store.records.news(since: feeds[index].cursor)
        let former = feeds[index].state
        feeds[index].cursor = news.cursor
        feeds[index].state = news.state
        if let state = news.state, feeds[index].ending == nil || news.ending == nil {
            let last = feeds[index].last[.changes] ?? .zero
            if news.changes == nil, former != nil, state.place.sequence <= last {
                endConnections()
            }
            send(news.changes, of: index, .changes, state)
            send(news.actions, of: index, .actions, state)
            if feeds[index].last[.states] != state.place.sequence || news.changes == nil {
                sendState(state, of: index, .states)
            }
            if former?.position != state.position { feeds[index].isBeatDue = true }
        }
        guard news.ending != feeds[index].ending else { return }
        feeds[index].ending = news.ending
        if news.ending != nil { for topic in Topic.allCases { sendEnding(of: index, topic) } }
    }

    private func send(
        _ records: ArraySlice<ServedRecord>?, of index: Int, _ topic: Topic,
        _ state: ServedRecords.State
    ) {
        guard let records else { return sendState(state, of: index, topic) }
        for record in records {
            let previous = feeds[index].last[topic] ?? .zero
            feeds[index].last[topic] = record.place.sequence
            guard feeds[index].wanted.contains(topic) else { continue }
            send(
                index, topic, record.kind.rawValue, record.place, previous: previous,
                actions: record.actionCount, record.body)
        }
    }

    private func sendState(_ state: ServedRecords.State, of index: Int, _ topic: Topic) {
        let previous = feeds[index].last[topic] ?? .zero
        var place = state.place
        // Refused actions are messages of this topic, too.
        if topic == .actions { place.sequence = state.position }
        feeds[index].last[topic] = place.sequence
        guard feeds[index].wanted.contains(topic) else { return }
        send(index, topic, "state", place, previous: previous, actions: 0, state.body)
    }

    private func sendEnding(of index: Int, _ topic: Topic) {
        let last = feeds[index].last[topic] ?? .zero
        let text = JSONValue.string(feeds[index].ending ?? "").description
        send(
            index, topic, "ended", RecordPlace(sequence: last), previous: last, actions: 0,
            Array(text.utf8))
    }

    private func send(
        _ index: Int, _ topic: Topic, _ kind: String, _ place: RecordPlace,
        previous: SequenceNumber, actions: Int, _ body: [UInt8]
    ) {
        let head = heads.head(
            kind, stores[index].name, place, log: epochs.log, previous: previous, actions: actions)
        socket?.send([feeds[index].topics[topic] ?? [], head, body])
    }

    private func sendBeats() {
        beatCount += 1
        let isFull = beatCount.isMultiple(of: Self.fullBeat)
        for index in feeds.indices where isFull || feeds[index].isBeatDue {
            guard let state = feeds[index].state, feeds[index].ending == nil else { continue }
            feeds[index].isBeatDue = false
            let previous = feeds[index].last[.beats] ?? .zero
            feeds[index].last[.beats] = state.position
            guard feeds[index].wanted.contains(.beats) else { continue }
            var place = state.place
            place.sequence = state.position
            send(index, .beats, "beat", place, previous: previous, actions: 0, [])
        }
    }

    // MARK: Subscriptions

    private func takeSubscriptions() {
        var count = 0
        while count < 1_024,
            let message = socket?.receive(
                partsMax: 1, bytesMax: Int(GatewayBounds.subscriptionBytesMax))
        {
            count += 1
            // Anything else means nothing here.
            guard let part = message.parts.first, part.first == 1 else { continue }
            subscribed(Array(part.dropFirst()))
        }
    }

    private func subscribed(_ prefix: [UInt8]) {
        var isKnown = false
        for (index, feed) in feeds.enumerated() {
            for (topic, bytes) in feed.topics where bytes.starts(with: prefix) {
                isKnown = true
                feeds[index].wanted.insert(topic)
                if topic.beginsWithState { feeds[index].awaited.insert(topic) }
            }
        }
        if !isKnown { refuse(prefix) }
    }

    /// Tells a subscriber that it will get nothing. Whoever has subscribed to a beginning of its prefix gets that, too; so
    /// the head has all members, and no number that means anything.
    private func refuse(_ prefix: [UInt8]) {
        guard errorsLeft > 0 else { return }
        errorsLeft -= 1
        let names = stores.map(\.name.description).joined(separator: ", ")
        let reason =
            "no topic begins with it; a topic is a store's name and a zero byte, and the stores are: \(names)"
        let head =
            #"{"actions":0,"epoch":null,"kind":"error","log":null,"message":\#(JSONValue.string(reason)),"#
            + #""origin":null,"previous":0,"sequence":0,"store":null,"timestamp":null}"#
        socket?.send([prefix, Array(head.utf8), []])
    }

    /// Sends the state to new subscribers. Until they have it, nothing else of the store is sent.
    private func sendStates(at now: Duration) {
        for index in feeds.indices where !feeds[index].awaited.isEmpty {
            guard now >= feeds[index].nextState else { continue }
            var byteCount = 0
            for topic in feeds[index].awaited {
                if feeds[index].ending != nil {
                    sendEnding(of: index, topic)
                } else if let state = feeds[index].state {
                    byteCount += state.body.count
                    sendState(state, of: index, topic)
                } else {
                    // It goes to everybody as soon as there is one.
                    continue
                }
                feeds[index].awaited.remove(topic)
            }
            feeds[index].nextState =
                now + GatewayBounds.statePause
                + GatewayBounds.statePausePerMiB * (Double(byteCount) / Double(1 << 20))
        }
    }
}
