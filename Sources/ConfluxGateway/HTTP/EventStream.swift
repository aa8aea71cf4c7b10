import Conflux
import ConfluxMonitoring
import ConfluxVocabulary
import Dispatch
import Synchronization

/// A place in the events of a store. As the id of an event it also names the log and the epoch. So nobody goes on after an
/// entry that the log has lost, or that another log has.
struct EventPosition: Sendable {
    let sequence: SequenceNumber
    private var log: String?
    private var epoch: UInt64?

    init(_ number: UInt64) { sequence = SequenceNumber(number) }

    /// Reads the id of an event; nil if it is none.
    init?(_ id: String) {
        let parts = id.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, let epoch = UInt64(parts[1]), let number = UInt64(parts[2]) else {
            return nil
        }
        (sequence, self.epoch, log) = (SequenceNumber(number), epoch, String(parts[0]))
    }

    /// - Returns: Whether it is a place of the log that this gateway follows.
    func isKnown(to epochs: EpochTable) -> Bool {
        guard let log, let epoch else { return true }
        return log == epochs.log.map { "\($0)" }
            && epoch == epochs.epoch(of: sequence)?.rawValue
    }

    static func id(of sequence: SequenceNumber, _ epochs: EpochTable) -> String {
        let log = epochs.log.map { "\($0)" } ?? ""
        return "\(log)-\(epochs.epoch(of: sequence)?.rawValue ?? 0)-\(sequence)"
    }
}

/// The events of a store for one reader, as
/// [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html). It reads what the store's
/// records have, and shares their bodies with other readers. If what a slow reader needs is discarded, it gets the state.
// Sendable: only one thread uses it at a time.
final class EventStream: HTTPStream, @unchecked Sendable {
    private static let partBytesMax = 64 << 10

    private let store: any AnyServedStore
    private let epochs: EpochTable
    private let isActions: Bool
    /// Up to where the reader has everything; nil if it needs the state.
    private var place: ServedRecords.Place?
    /// The number of the last event.
    private var last: SequenceNumber
    private var messages: MessageWriter
    private var hasEnded = false
    /// Whether the store has ended for good.
    private var isOver = false
    private var lastAt = ContinuousClock.now

    /// - Parameters:
    ///   - store: The store.
    ///   - position: What the reader has; nil if it begins with the state.
    ///   - isActions: Whether it gets actions, or changes.
    ///   - epochs: Knows the log.
    init(
        of store: any AnyServedStore, after position: EventPosition?, isActions: Bool,
        _ epochs: EpochTable
    ) {
        self.store = store
        self.epochs = epochs
        self.isActions = isActions
        let known = position.flatMap { $0.isKnown(to: epochs) ? $0.sequence : nil }
        last = known ?? .zero
        place = known.flatMap { store.records.place(after: $0, isActions: isActions) }
        messages = MessageWriter(of: store.name, log: epochs.log, after: last)
    }

    func next() -> HTTPPart {
        if let part = events() {
            lastAt = .now
            return part
        }
        guard ContinuousClock.now - lastAt >= StreamHub.beatInterval else { return .none }
        lastAt = .now
        // A comment shows that the connection stands, here and there.
        return .bytes([Array(": \n\n".utf8)])
    }

    private func events() -> HTTPPart? {
        if isOver { return .end }
        let found = store.records.records(from: place, isActions: isActions)
        var pieces: [[UInt8]] = []
        var byteCount = 0
        if let records = found.records, !records.isEmpty {
            place = found.place
            for record in records {
                place?.advance(by: 1)
                let body = record.body
                add(
                    record.kind.rawValue, record.place, actions: record.actionCount, body,
                    to: &pieces)
                byteCount += body.count
                if byteCount >= Self.partBytesMax { break }
            }
            return .bytes(pieces)
        }
        if let ending = found.ending {
            guard !hasEnded || ending.isOver else { return nil }
            isOver = ending.isOver
            guard !hasEnded else { return .end }
            hasEnded = true
            let body = Array(JSONValue.string(ending.reason).description.utf8)
            add("ended", RecordPlace(sequence: last), actions: 0, body, to: &pieces)
            return .bytes(pieces)
        }
        guard let state = found.state else { return nil }
        hasEnded = false
        let isBeginning = found.records == nil
        place = found.place
        guard isBeginning else { return nil }
        var place = state.place
        // Refused actions are events of actions, too.
        if isActions { place.sequence = state.position }
        add("state", place, actions: 0, state.body, to: &pieces)
        return .bytes(pieces)
    }

    /// Adds an event. The body is not copied: many readers may have the same.
    private func add(
        _ kind: String, _ place: RecordPlace, actions: Int, _ body: [UInt8],
        to pieces: inout [[UInt8]]
    ) {
        last = place.sequence
        let message = messages.frame(kind, place, actions: actions)
        let line = "id: \(EventPosition.id(of: last, epochs))\nevent: \(kind)\ndata: "
        pieces += [Array(line.utf8) + message.before, body, message.after + Array("\n\n".utf8)]
    }
}

/// Wakes the readers of events when their store has some. Safe on any thread.
// Sendable: immutable, besides what the mutex guards; the timer is safe on any thread.
final class StreamHub: @unchecked Sendable {
    /// How often all readers are looked at. Whoever has heard nothing for that long gets an empty comment.
    static let beatInterval = Duration.seconds(15)

    private let readers = Mutex<[StoreName: [ObjectIdentifier: HTTPExchange]]>([:])
    private let timer: any DispatchSourceTimer

    init() {
        timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "conflux-events"))
        let seconds = DispatchTimeInterval.seconds(Int(Self.beatInterval.components.seconds))
        timer.schedule(deadline: .now() + seconds, repeating: seconds)
        timer.setEventHandler { [weak self] in self?.beat() }
        timer.activate()
    }

    deinit { timer.cancel() }

    func add(_ reader: HTTPExchange, of store: StoreName) {
        readers.withLock { $0[store, default: [:]][ObjectIdentifier(reader)] = reader }
        reader.whenOver { [weak self, id = ObjectIdentifier(reader)] in
            self?.readers.withLock { _ = $0[store]?.removeValue(forKey: id) }
        }
    }

    /// A store has news.
    func wake(_ store: StoreName) {
        for reader in readers.withLock({ $0[store] ?? [:] }).values { reader.wake() }
    }

    private func beat() {
        for reader in readers.withLock({ Array($0.values.joined()) }) { reader.value.wake() }
    }
}
