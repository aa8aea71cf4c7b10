import CPartner
import Conflux
import ConfluxLog
import ConfluxNode
import ConfluxSequencer
import Foundation
import Synchronization

/// The processes of the workloads with a long history.
enum LedgerRoles {
    static func keeper(folder: String, _ settings: KeeperSettings) async throws {
        var configuration = SequencerConfiguration(
            bind: "tcp://127.0.0.1:0", storage: .folder(folder, SQLiteLogSettings()))
        if let bytes = settings.checkpointBytes { configuration.checkpointBytes = bytes }
        if settings.keepsAll { configuration.retention.bytesMax = .max }
        configuration.adjust = { adjusted in
            if let bytes = settings.digestBytesMin { adjusted.digestBytesMin = bytes }
            if let bytes = settings.snapshotBytesMin { adjusted.snapshotBytesMin = bytes }
        }
        let (serving, served) = AsyncStream<Void>.makeStream()
        let tally = KeptTally()
        let start = monotonicNanoseconds()
        let sequencer = try Sequencer.start(configuration) { event in
            if case .serving = event {
                tally.kept.withLock { $0.started = monotonicNanoseconds() - start }
                served.finish()
            }
            tally.note(event)
        }
        for await _ in serving {}
        Control.tell(.listening([sequencer.address, sequencer.feedAddress]))
        try await Control.obey { order in
            switch order {
            case .count: return .kept(tally.kept.withLock { $0 })
            case .weigh: return weigh()
            default: throw BenchError("a sequencer can't do \(order)")
            }
        }
    }

    static func node(address: String, _ table: TableKind) async throws {
        switch table {
        case .dictionary:
            let worker = LedgerWorker<[String: String]>(address: address)
            try await Control.obey { try await worker.perform($0) }
        case .tree:
            let worker = LedgerWorker<TreeMap<String, String>>(address: address)
            try await Control.obey { try await worker.perform($0) }
        }
    }

    static func weigh() -> Report {
        let memory = usedMemory()
        return .memory(now: memory.now, most: memory.most)
    }

    static func listener(feed: String) async throws {
        let silences = Silences()
        Thread { silences.listen(to: feed) }.start()
        try await Control.obey { order in
            guard case .silences = order else { throw BenchError("a listener can't do \(order)") }
            return .times(silences.take())
        }
    }

    static func decoder() async throws {
        try await Control.obey { order in
            switch order {
            case .decodeLedger(let path, let kind, let table):
                let start = monotonicNanoseconds()
                let data = try Data(contentsOf: URL(fileURLWithPath: path))
                let rows =
                    switch table {
                    case .dictionary:
                        try kind.decode(Ledger<[String: String]>.self, from: data).rows.count
                    case .tree:
                        try kind.decode(Ledger<TreeMap<String, String>>.self, from: data).rows.count
                    }
                let took = monotonicNanoseconds() - start
                guard rows > 0 else { throw BenchError("\(path) has no rows") }
                return .took(took)
            case .decodeActions(let count, let rows, let kind):
                return .took(try apply(count, rows: rows, kind))
            default: throw BenchError("a decoder can't do \(order)")
            }
        }
    }

    private static func apply(_ count: Int, rows: Int, _ kind: DecoderKind) throws -> UInt64 {
        let encoder = CanonicalCoder()
        let payloads = try (0..<count).map {
            Data(try encoder.encode(LedgerAction.turn($0, rows: rows)))
        }
        let context = ActionContext(timestamp: Timestamp(0))
        var ledger = Ledger<[String: String]>()
        let start = monotonicNanoseconds()
        for payload in payloads {
            ledger.apply(try kind.decode(LedgerAction.self, from: payload), context)
        }
        let took = monotonicNanoseconds() - start
        guard ledger.rows.count == min(rows, count) else { throw BenchError("rows are missing") }
        return took
    }
}

extension DecoderKind {
    private static let canonicalDecoder = CanonicalCoder()
    private static let foundationDecoder = JSONDecoder()

    func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        switch self {
        case .canonical: try Self.canonicalDecoder.decode(type, from: data)
        case .foundation: try Self.foundationDecoder.decode(type, from: data)
        }
    }
}

/// Counts what a sequencer reports to have kept.
private final class KeptTally: Sendable {
    let kept = Mutex(Kept())

    func note(_ event: SequencerEvent) {
        kept.withLock { kept in
            switch event {
            case .note(.snapshotTaken(let place, let byteCount)):
                kept.snapshots += 1
                kept.snapshotAt = place.sequence.rawValue
                kept.snapshotBytes = byteCount
            case .note(.recovered(let from, let through)):
                kept.read = through.rawValue - from.rawValue
            case .checkpointSaved(_, let bytes):
                kept.checkpoints += 1
                kept.checkpointBytes = bytes
            case .note(.snapshotFailed(let place, let reason)):
                kept.failures.append("snapshot at \(place.sequence): \(reason)")
            case .checkpointFailed(let message), .termFailed(let message, _):
                kept.failures.append(message)
            default: break
            }
        }
    }
}

/// The times between two messages of a feed.
private final class Silences: Sendable {
    private let times = Mutex<[UInt64]>([])

    func listen(to feed: String) {
        var client = partner_client()
        guard partner_client_open(&client, nil, feed) == 0 else {
            Control.tell(.failed("the feed can't be listened to"))
            return
        }
        var last = monotonicNanoseconds()
        while partner_client_skip(&client) == 0 {
            let now = monotonicNanoseconds()
            let silence = now - last
            last = now
            times.withLock { $0.append(silence) }
        }
        Control.tell(.failed("the feed has ended"))
    }

    func take() -> [UInt64] {
        times.withLock { times in
            defer { times = [] }
            return times
        }
    }
}
