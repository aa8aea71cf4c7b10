import Conflux
import ConfluxVocabulary
import Testing

@testable import ConfluxGateway
@testable import ConfluxProtocol

/// What a gateway remembers of a store.
struct RecordTests {
    private func record(
        _ sequence: UInt64, from first: UInt64? = nil, bytes: Int = 2
    ) -> ServedRecord {
        ServedRecord(
            kind: .change, first: SequenceNumber(first ?? sequence),
            place: RecordPlace(sequence: SequenceNumber(sequence)), actionCount: 1,
            body: [UInt8](repeating: 0, count: bytes))
    }

    private func read(
        _ records: ServedRecords, after sequence: SequenceNumber, isActions: Bool
    ) -> ArraySlice<ServedRecord>? {
        let place = records.place(after: sequence, isActions: isActions)
        return records.records(from: place, isActions: isActions).records
    }

    private func state(_ sequence: UInt64) -> ServedRecords.State {
        ServedRecords.State(
            place: RecordPlace(sequence: SequenceNumber(sequence)),
            position: SequenceNumber(sequence), body: [])
    }

    @Test func `the newest records are kept, and whoever needs an older one is told`() {
        var ring = RecordRing(after: SequenceNumber(10))
        #expect(ring.records(after: SequenceNumber(9)) == nil)
        #expect(ring.records(after: SequenceNumber(10))?.isEmpty == true)
        for number in 0..<UInt64(RecordRing.countMax * 3) { ring.append(record(11 + 2 * number)) }
        #expect(ring.records(from: 0) == nil)
        #expect(ring.records(from: ring.end)?.isEmpty == true)
        let first = ring.end - UInt64(RecordRing.countMax)
        let kept = ring.records(from: first)
        #expect(ring.records(from: first - 1) == nil && kept?.count == RecordRing.countMax)
        let floor = (kept?.first?.place.sequence.rawValue ?? 0) - 2
        #expect(ring.records(after: SequenceNumber(floor))?.count == RecordRing.countMax)
        #expect(ring.records(after: SequenceNumber(floor - 1)) == nil)
        // Between two records, and at the last one.
        #expect(ring.records(after: SequenceNumber(floor + 3))?.count == RecordRing.countMax - 1)
        #expect(ring.records(after: SequenceNumber(floor + 4))?.count == RecordRing.countMax - 2)
        #expect(ring.records(after: SequenceNumber(UInt64.max))?.isEmpty == true)
    }

    @Test func `large records are kept up to their bytes`() {
        var ring = RecordRing(after: .zero)
        for number in 1...20 as ClosedRange<UInt64> { ring.append(record(number, bytes: 1 << 20)) }
        #expect(ring.records(after: SequenceNumber(4))?.count == RecordRing.bytesMax >> 20)
        #expect(ring.records(after: SequenceNumber(3)) == nil)
        ring.append(record(21, bytes: RecordRing.bytesMax + 1))
        #expect(ring.records(after: SequenceNumber(20)) == nil)
        #expect(ring.records(after: SequenceNumber(21))?.isEmpty == true)
    }

    @Test func `a reader gets each record once, and begins anew with a state that was loaded`() {
        let records = ServedRecords()
        #expect(records.news(since: .init()).state == nil)
        records.load(state(5))
        var news = records.news(since: .init())
        #expect(news.state?.place.sequence == SequenceNumber(5) && news.changes == nil)
        records.add([record(6)], record(6), state(6))
        records.add([record(7)], nil, nil)
        news = records.news(since: news.cursor)
        #expect(news.changes?.count == 1 && news.actions?.count == 2)
        // The last action was refused: the state is the same, and is that of a later number.
        #expect(news.state?.position == SequenceNumber(7))
        #expect(news.state?.place.sequence == SequenceNumber(6))
        #expect(records.news(since: news.cursor).changes?.isEmpty == true)
        // Actions were lost, and the changes were not.
        records.add(nil, record(9), state(9))
        news = records.news(since: news.cursor)
        #expect(news.changes?.count == 1 && news.actions == nil)
        #expect(read(records, after: SequenceNumber(6), isActions: true) == nil)
        #expect(read(records, after: SequenceNumber(6), isActions: false)?.count == 1)
        // So were refused ones, and nothing changed.
        records.skip(through: SequenceNumber(12))
        let former = news
        news = records.news(since: news.cursor)
        #expect(news.changes?.isEmpty == true && news.actions == nil)
        #expect(news.state?.position == SequenceNumber(12))
        #expect(news.state?.place.sequence == former.state?.place.sequence)
        // Another history: its numbers may be lower, and those of the former one are unknown.
        records.load(state(3))
        #expect(records.news(since: news.cursor).changes == nil)
        #expect(read(records, after: SequenceNumber(9), isActions: false) == nil)
        records.end("gone", isOver: false)
        #expect(records.present.state == nil && records.present.ending?.reason == "gone")
        // It may go on, unless that was for good.
        records.load(state(4))
        #expect(records.present.state != nil && records.present.ending == nil)
        records.end("gone", isOver: true)
        records.load(state(5))
        records.add([record(6)], record(6), state(6))
        #expect(records.present.state == nil && records.present.ending?.reason == "gone")
    }

    @Test func `a number within a merged change gets the state, and so does one of a lost history`()
    {
        let records = ServedRecords()
        func since(_ number: UInt64) -> Int? {
            read(records, after: SequenceNumber(number), isActions: false)?.count
        }
        records.load(state(9))
        records.add([], record(15, from: 10), state(15))
        records.add([], record(16), state(16))
        #expect(since(9) == 2 && since(15) == 1 && since(16) == 0)
        #expect(since(10) == nil && since(12) == nil && since(14) == nil)
        // The history goes back to 12. Whoever has 12 to 16 may have them of the former one.
        records.load(state(12))
        for number in 13...20 as ClosedRange<UInt64> {
            records.add([], record(number), state(number))
        }
        for number in 9...16 as ClosedRange<UInt64> { #expect(since(number) == nil, "\(number)") }
        #expect(since(17) == 3)
    }

    /// A level, which may be no number that JSON has.
    private struct Level: Model {
        static let name = "level"
        static let coding = PayloadCoding.compact
        enum Action: Codable, Sendable { case set(Double) }
        struct Refusal: Error {}
        var level = 0.0

        mutating func apply(_ action: Action, _ context: ActionContext) {}
    }

    @Test func `an action becomes JSON once somebody reads it, and all readers share it`() {
        let run = CommittedRun<ModelState<Level>>(
            ActionCoder(sizeBytesMax: 1 << 20), payloadBytesEach: 9)
        for (number, level) in [1.5, .infinity, 2].enumerated() {
            run.append(
                .set(level), ActionContext(sequence: SequenceNumber(UInt64(number + 1))),
                number == 2 ? Level.Refusal() : nil)
        }
        #expect(run.count == 3 && run.committedCount == 2)
        var ring = RecordRing(after: .zero)
        for (index, context) in run.contexts.enumerated() {
            ring.append(
                ServedRecord(
                    run.refusals[index] == nil ? .action : .refused,
                    RecordPlace(sequence: context.sequence), of: run, at: index))
        }
        let bodies = ring.records(from: 0)?.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(
            bodies == [
                #"{"set":{"_0":1.5}}"#, "null",
                #"{"action":{"set":{"_0":2.0}},"reason":"Refusal()"}"#,
            ])
        let first = run.body(at: 0)
        #expect(
            first.withUnsafeBufferPointer { $0.baseAddress }
                == run.body(at: 0).withUnsafeBufferPointer { $0.baseAddress })
        run.forget(0)
        #expect(run.body(at: 0) == first)
    }

    @Test func `the epoch of an entry is known between two entries that were delivered`() {
        let table = EpochTable()
        func note(_ epoch: UInt64, _ first: UInt64, log: UInt64 = 1) {
            table.note(
                Commit(
                    log: LogID(high: 0, low: log), epoch: Epoch(epoch), predecessor: Epoch(epoch),
                    first: SequenceNumber(first), count: 2, timestamp: Timestamp(0), blocks: []))
        }
        note(7, 10)
        note(9, 30)
        note(7, 18)
        #expect(table.epoch(of: SequenceNumber(9)) == nil)
        #expect(table.epoch(of: SequenceNumber(15)) == Epoch(7))
        #expect(table.epoch(of: SequenceNumber(25)) == nil)
        #expect(table.epoch(of: SequenceNumber(31)) == Epoch(9))
        for epoch in 100..<(100 + UInt64(EpochTable.countMax)) { note(epoch, epoch) }
        #expect(table.epoch(of: SequenceNumber(15)) == nil)
        // A history was lost: a later epoch has numbers that a former one had.
        note(200, 150)
        #expect(table.epoch(of: SequenceNumber(149)) == Epoch(149))
        #expect(table.epoch(of: SequenceNumber(150)) == Epoch(200))
        note(3, 1, log: 2)
        #expect(table.epoch(of: SequenceNumber(31)) == nil && table.log?.low == 2)
    }
}
