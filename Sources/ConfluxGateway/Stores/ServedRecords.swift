import ConfluxVocabulary
import Synchronization

/// The place of something that happened to a store.
struct RecordPlace: Sendable {
    var sequence: SequenceNumber
    /// nil if it is not known: a state that was loaded has the number of its last entry, but not its epoch.
    var epoch: Epoch?
    /// nil for a state that was loaded.
    var timestamp: Timestamp?
    /// nil for a state that was loaded.
    var origin: Origin?
}

/// Something that happened to a store.
struct ServedRecord: Sendable {
    enum Kind: String, Sendable {
        /// The state changed; the body is a JSON Patch.
        case change
        /// An action was applied; the body is the action.
        case action
        /// An action was refused; the body has the action and the reason.
        case refused
    }

    let kind: Kind
    /// The number of the first action that it includes.
    let first: SequenceNumber
    /// The last action that it includes.
    let place: RecordPlace
    /// How many actions it includes. Under load, a change may include several.
    let actionCount: Int
    fileprivate var content: Content

    fileprivate enum Content: Sendable {
        case bytes([UInt8])
        /// An action that becomes JSON once somebody wants it.
        case action(any ActionBodies, Int)
    }

    init(
        kind: Kind, first: SequenceNumber, place: RecordPlace, actionCount: Int, body: [UInt8]
    ) {
        (self.kind, self.first, self.place, self.actionCount) = (kind, first, place, actionCount)
        content = .bytes(body)
    }

    /// Makes the record of an action.
    ///
    /// - Parameters:
    ///   - kind: Whether it was refused.
    ///   - place: Its place.
    ///   - bodies: Has the action.
    ///   - index: Which of its actions it is.
    init(_ kind: Kind, _ place: RecordPlace, of bodies: any ActionBodies, at index: Int) {
        (self.kind, self.first, self.place) = (kind, place.sequence, place)
        actionCount = 1
        content = .action(bodies, index)
    }

    /// JSON in UTF-8.
    var body: [UInt8] {
        switch content {
        case .bytes(let bytes): bytes
        case .action(let bodies, let index): bodies.body(at: index)
        }
    }

    /// About how many bytes it keeps.
    fileprivate var byteCount: Int {
        switch content {
        case .bytes(let bytes): bytes.count
        case .action(let bodies, _): bodies.byteCountEach
        }
    }

    /// Frees its body.
    fileprivate mutating func empty() {
        if case .action(let bodies, let index) = content { bodies.forget(index) }
        content = .bytes([])
    }
}

/// Actions that can be written as JSON. All readers share what is written.
protocol ActionBodies: AnyObject, Sendable {
    /// About how many bytes each takes.
    var byteCountEach: Int { get }
    func body(at index: Int) -> [UInt8]
    /// Nobody will ask for a body any more.
    func forget(_ index: Int)
}

/// The newest records of one kind, oldest first.
struct RecordRing: Sendable {
    /// The most records. *At the bound* the oldest is discarded: who needs it gets the state.
    static let countMax = 4_096
    /// The most bytes of their bodies. *At the bound* the oldest are discarded.
    static let bytesMax = 16 << 20

    private var records: [ServedRecord] = []
    /// How many of `records` are discarded.
    private var dropped = 0
    private var byteCount = 0
    /// The index of the next record. Indices never repeat.
    private(set) var end: UInt64 = 0
    /// The number before the first record that is kept: everything after it is here.
    private(set) var floor: SequenceNumber

    init(after floor: SequenceNumber, index: UInt64 = 0) {
        self.floor = floor
        end = index
    }

    private var start: UInt64 { end - UInt64(records.count - dropped) }

    mutating func append(_ record: ServedRecord) {
        records.append(record)
        end += 1
        byteCount += record.byteCount
        while records.count - dropped > Self.countMax || byteCount > Self.bytesMax {
            floor = records[dropped].place.sequence
            byteCount -= records[dropped].byteCount
            // Its memory is needed now, and its place is removed with many others.
            records[dropped].empty()
            dropped += 1
        }
        if dropped > Self.countMax {
            records.removeFirst(dropped)
            dropped = 0
        }
    }

    /// The records from an index on; nil if the first of them is discarded.
    func records(from index: UInt64) -> ArraySlice<ServedRecord>? {
        guard index >= start else { return nil }
        return records[(dropped + Int(min(index, end) - start))...]
    }

    /// The records after a number; nil if it is too long ago, or if the number is within a record: what that changes begins
    /// before the number.
    func records(after sequence: SequenceNumber) -> ArraySlice<ServedRecord>? {
        guard sequence >= floor else { return nil }
        let kept = records[dropped...]
        // The numbers rise, so this is a binary search.
        var (low, high) = (kept.startIndex, kept.endIndex)
        while low < high {
            let middle = (low + high) / 2
            if kept[middle].place.sequence <= sequence { low = middle + 1 } else { high = middle }
        }
        if let next = kept[low...].first, next.first <= sequence { return nil }
        return kept[low...]
    }
}

/// What a gateway has of one store: the present state, and the newest changes and actions. Safe on any thread.
final class ServedRecords: Sendable {
    struct State: Sendable {
        /// The last change.
        let place: RecordPlace
        /// The number up to which it is the state: later actions were refused.
        var position: SequenceNumber
        /// JSON in UTF-8.
        let body: [UInt8]
    }

    /// Why a store is not served any more.
    struct Ending: Sendable {
        let reason: String
        /// Whether it is for good. Otherwise it is served again once a state is loaded.
        let isOver: Bool
    }

    /// What has happened since a reader looked last.
    struct News {
        /// The present state; nil if there is none yet, or the store has ended.
        var state: State?
        /// nil if the reader must begin anew with the state.
        var changes: ArraySlice<ServedRecord>?
        var actions: ArraySlice<ServedRecord>?
        var cursor: Cursor
        /// Why the store is not served any more; nil if it is.
        var ending: String?
    }

    /// Up to where a reader has read.
    struct Cursor: Sendable {
        fileprivate var load: UInt64 = 0
        fileprivate var changes: UInt64 = 0
        fileprivate var actions: UInt64 = 0
    }

    /// The place of one reader who follows changes, or actions.
    struct Place: Sendable {
        fileprivate var load: UInt64
        fileprivate var index: UInt64

        mutating func advance(by count: Int) { index += UInt64(count) }
    }

    private struct Content {
        var state: State?
        var changes = RecordRing(after: .zero)
        var actions = RecordRing(after: .zero)
        /// How often a state was loaded.
        var load: UInt64 = 0
        var ending: String?
        /// Whether it has ended for good.
        var isOver = false
        /// The highest number that anybody was told.
        var highest = SequenceNumber.zero
    }

    private let content = Mutex(Content())

    /// A state was loaded. What was before it is another history, or unknown. So whoever has a number of that gets the
    /// state.
    func load(_ state: State) {
        content.withLock { content in
            guard !content.isOver else { return }
            content.ending = nil
            let floor =
                content.load == 0 ? state.position : max(state.position, content.highest.next)
            content.state = state
            content.load += 1
            content.highest = max(content.highest, state.position)
            content.changes = RecordRing(after: floor, index: content.changes.end)
            content.actions = RecordRing(after: floor, index: content.actions.end)
        }
    }

    /// Actions were committed.
    ///
    /// - Parameters:
    ///   - actions: The actions, with those that were refused; nil if some are missing.
    ///   - change: What they changed; nil if all were refused.
    ///   - state: The state after them; nil if all were refused.
    func add(_ actions: [ServedRecord]?, _ change: ServedRecord?, _ state: State?) {
        content.withLock { content in
            guard content.ending == nil else { return }
            if let last = state?.position ?? actions?.last?.place.sequence {
                content.state?.position = last
                content.highest = max(content.highest, last)
            }
            if let actions {
                for record in actions { content.actions.append(record) }
            } else if let state {
                content.actions = RecordRing(
                    after: state.position, index: content.actions.end + 1)
            }
            if let change { content.changes.append(change) }
            if let state { content.state = state }
        }
    }

    /// Actions were refused up to a number, and are missing.
    func skip(through position: SequenceNumber) {
        content.withLock { content in
            guard content.ending == nil, content.state != nil else { return }
            content.state?.position = position
            content.highest = max(content.highest, position)
            content.actions = RecordRing(after: position, index: content.actions.end + 1)
        }
    }

    /// The store is not served any more.
    ///
    /// - Parameters:
    ///   - reason: Why.
    ///   - isOver: Whether it is for good. Otherwise it is served again once a state is loaded.
    func end(_ reason: String, isOver: Bool) {
        content.withLock { content in
            content.ending = reason
            content.isOver = content.isOver || isOver
        }
    }

    func news(since cursor: Cursor) -> News {
        content.withLock { content in
            let isSameHistory = cursor.load == content.load
            return News(
                state: content.state,
                changes: isSameHistory ? content.changes.records(from: cursor.changes) : nil,
                actions: isSameHistory ? content.actions.records(from: cursor.actions) : nil,
                cursor: Cursor(
                    load: content.load, changes: content.changes.end, actions: content.actions.end),
                ending: content.ending)
        }
    }

    /// The place after a number.
    ///
    /// - Parameters:
    ///   - sequence: The number.
    ///   - isActions: Whether the reader follows actions, or changes.
    /// - Returns: nil if it is too long ago: then the reader begins with the state.
    func place(after sequence: SequenceNumber, isActions: Bool) -> Place? {
        content.withLock { content in
            let ring = isActions ? content.actions : content.changes
            // Only another history can have a later number.
            guard let state = content.state, sequence <= state.position,
                let records = ring.records(after: sequence)
            else { return nil }
            return Place(load: content.load, index: ring.end - UInt64(records.count))
        }
    }

    /// What has happened since a place.
    ///
    /// - Parameters:
    ///   - place: The place; nil for a reader who begins.
    ///   - isActions: Whether the reader follows actions, or changes.
    /// - Returns: The records; nil if the reader begins with the state. The state, or why there is none. The place of the
    ///   first record, or after the state.
    func records(
        from place: Place?, isActions: Bool
    ) -> (records: ArraySlice<ServedRecord>?, state: State?, ending: Ending?, place: Place) {
        content.withLock { content in
            let ring = isActions ? content.actions : content.changes
            let records = place.flatMap {
                $0.load == content.load ? ring.records(from: $0.index) : nil
            }
            return (
                records, content.ending == nil ? content.state : nil,
                content.ending.map { Ending(reason: $0, isOver: content.isOver) },
                Place(load: content.load, index: ring.end - UInt64(records?.count ?? 0))
            )
        }
    }

    /// The action with a number; nil if it is too long ago, or not here yet.
    subscript(sequence: SequenceNumber) -> ServedRecord? {
        guard sequence > .zero else { return nil }
        return content.withLock { content in
            let rest = content.actions.records(after: SequenceNumber(sequence.rawValue - 1))
            return rest?.first { $0.place.sequence == sequence }
        }
    }

    /// The present state, or why there is none.
    var present: (state: State?, ending: Ending?) {
        content.withLock { content in
            let ending = content.ending.map { Ending(reason: $0, isOver: content.isOver) }
            return (ending == nil ? content.state : nil, ending)
        }
    }
}
