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
/// records have, so a slow reader takes no memory: if what it needs is discarded, it gets the state.
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
        let part = events()
        if part.isEmpty {
            guard ContinuousClock.now - lastAt >= StreamHub.beatInterval else { return .none }
            lastAt = .now
            // A comment shows that the connection stands, here and there.
            return .bytes(Array(": \n\n".utf8))
        }
        lastAt = .now
        return .bytes(part)
    }

    private func events() -> [UInt8] {
        let found = store.records.records(from: place, isActions: isActions)
        var bytes: [UInt8] = []
        if let ending = found.ending {
            guard !hasEnded else { return [] }
            hasEnded = true
            let body = Array(JSONValue.string(ending).description.utf8)
            add("ended", RecordPlace(sequence: last), last, actions: 0, body, to: &bytes)
            return bytes
        }
        guard let state = found.state else { return [] }
        hasEnded = false
        place = found.place
        guard let records = found.records else {
            var place = state.place
            // Refused actions are events of actions, too.
            if isActions { place.sequence = state.position }
            add("state", place, state.position, actions: 0, state.body, to: &bytes)
            return bytes
        }
        for record in records {
            place?.advance(by: 1)
            add(
                record.kind.rawValue, record.place, record.place.sequence,
                actions: record.actionCount, record.body, to: &bytes)
            if bytes.count >= Self.partBytesMax { break }
        }
        return bytes
    }

    private func add(
        _ kind: String, _ place: RecordPlace, _ sequence: SequenceNumber, actions: Int,
        _ body: [UInt8], to bytes: inout [UInt8]
    ) {
        last = sequence
        bytes += "id: \(EventPosition.id(of: sequence, epochs))\nevent: \(kind)\ndata: ".utf8
        bytes += messages.message(kind, place, actions: actions, body)
        bytes += "\n\n".utf8
    }
}

/// Wakes the readers of events when their store has some. Safe on any thread.
// Sendable: immutable, besides what the mutex guards; the timer is safe on any thread.
final class StreamHub: @unchecked Sendable {
    /// How long a reader hears nothing. *At the bound* it gets an empty comment.
    static let beatInterval = Duration.seconds(15)

    private let readers = Mutex<[StoreName: [HTTPExchange]]>([:])
    private let timer: any DispatchSourceTimer

    init() {
        timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "conflux-events"))
        timer.schedule(deadline: .now() + 15, repeating: 15)
        timer.setEventHandler { [weak self] in self?.beat() }
        timer.activate()
    }

    deinit { timer.cancel() }

    func add(_ reader: HTTPExchange, of store: StoreName) {
        readers.withLock { $0[store, default: []].append(reader) }
    }

    /// A store has news.
    func wake(_ store: StoreName) {
        for reader in readers.withLock({ $0[store] }) ?? [] { reader.wake() }
    }

    private func beat() {
        let all = readers.withLock { readers in
            readers = readers.mapValues { $0.filter { !$0.isOver } }
            return readers.values.joined()
        }
        for reader in all { reader.wake() }
    }
}
