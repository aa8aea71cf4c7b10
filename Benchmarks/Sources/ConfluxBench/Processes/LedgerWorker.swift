import ConfluxNode
import Foundation
import Synchronization

/// A node that carries out orders with ledgers.
final class LedgerWorker<Table: RowTable> {
    private let address: String
    private var connected: Node?
    private var stores: [String: ModelStore<Ledger<Table>>] = [:]
    /// Whether the executors that can be stopped are stopped.
    private let isStopped = Flag()
    private var probe: (task: Task<[UInt64], any Error>, isEnded: Flag)?

    init(address: String) {
        self.address = address
    }

    func perform(_ order: Order) async throws -> Report {
        switch order {
        case .open(let name): return .took(try await open(name))
        case .openMany(let first, let count):
            var times: [UInt64] = []
            for number in first..<first + count { times.append(try await open("s\(number)")) }
            return .times(times)
        case .drop(let first, let count):
            var times: [UInt64] = []
            for number in first..<first + count { times.append(try await drop("s\(number)")) }
            return .times(times)
        case .fill(let name, let rows): return .took(try await fill(name, rows))
        case .write(let name, let first, let count, let rows):
            return .took(try await write(name, first..<first + count, rows))
        case .append(let name, let count, let bytes):
            return .took(try await append(name, count, bytes))
        case .openGated(let name): return .took(try await openGated(name))
        case .stopGated:
            isStopped.isSet.store(true, ordering: .relaxed)
            return .took(0)
        case .barrier:
            return .took(try await timed { try await node().barrier(patience: .seconds(300)) })
        case .roundTrips(let name, let count, let rows):
            let store = try store(name)
            var times: [UInt64] = []
            for index in 0..<count {
                times.append(try await Self.roundTrip(store, index, rows))
            }
            return .times(times)
        case .beginProbe(let name, let rows):
            try beginProbe(name, rows)
            return .took(0)
        case .endProbe: return .times(try await endProbe())
        case .past(let name):
            let store = try store(name)
            return .took(try await timed { _ = try await store.state(at: store.version.sequence) })
        case .export(let name, let path):
            let bytes = try CanonicalCoder().encode(try store(name).value)
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            return .took(UInt64(bytes.count))
        case .close:
            stores = [:]
            await connected?.close()
            connected = nil
            return .took(0)
        case .weigh: return LedgerRoles.weigh()
        default: throw BenchError("a node can't do \(order)")
        }
    }

    private func timed(_ body: () async throws -> Void) async throws -> UInt64 {
        let start = monotonicNanoseconds()
        try await body()
        return monotonicNanoseconds() - start
    }

    private func node() async throws -> Node {
        if let connected { return connected }
        let node = try await Node.connect(to: address)
        connected = node
        return node
    }

    private func store(_ name: String) throws -> ModelStore<Ledger<Table>> {
        guard let store = stores[name] else { throw BenchError("\(name) is not open") }
        return store
    }

    private func open(_ name: String) async throws -> UInt64 {
        try await timed { stores[name] = try await node().store(Ledger<Table>.self, named: name) }
    }

    private func drop(_ name: String) async throws -> UInt64 {
        let store = try store(name)
        defer { stores[name] = nil }
        return try await timed { try await node().drop(store) }
    }

    /// The number of rows that one action fills.
    private static var fillRows: Int { 1_000 }

    private func fill(_ name: String, _ rows: Int) async throws -> UInt64 {
        let store = try store(name)
        return try await timed {
            var last: DispatchHandle?
            for first in stride(from: 0, to: rows, by: Self.fillRows) {
                last = store.dispatch(.fill(from: first, to: min(rows, first + Self.fillRows)))
            }
            try await last?.receipt()
        }
    }

    private func write(_ name: String, _ indices: Range<Int>, _ rows: Int) async throws -> UInt64 {
        let store = try store(name)
        return try await timed {
            var last: DispatchHandle?
            for index in indices { last = store.dispatch(.turn(index, rows: rows)) }
            try await last?.receipt()
        }
    }

    private func append(_ name: String, _ count: Int, _ bytes: Int) async throws -> UInt64 {
        let store = try store(name)
        let text = String(repeating: "x", count: bytes)
        return try await timed {
            var last: DispatchHandle?
            for index in 0..<count {
                // A task has to wait for room itself. In 256 actions, the node's outbox can't become full.
                if index.isMultiple(of: 256) { try await node().waitForRoom() }
                last = store.dispatch(.set(row: LedgerRow.name(0), to: text))
            }
            try await last?.receipt()
        }
    }

    private func openGated(_ name: String) async throws -> UInt64 {
        let isStopped = isStopped
        let executor = Executor { function in
            if !isStopped.isSet.load(ordering: .relaxed) { function() }
        }
        return try await timed {
            stores[name] = try await node().store(
                Ledger<Table>.self, named: name, executor: executor)
        }
    }

    private static func roundTrip(
        _ store: ModelStore<Ledger<Table>>, _ index: Int, _ rows: Int
    ) async throws -> UInt64 {
        let start = monotonicNanoseconds()
        try await store.dispatch(.turn(index, rows: rows)).receipt()
        return monotonicNanoseconds() - start
    }

    // MARK: Light load

    /// Whether something has ended.
    private final class Flag: Sendable {
        let isSet = Atomic(false)
    }

    private func beginProbe(_ name: String, _ rows: Int) throws {
        let store = try store(name)
        let isEnded = Flag()
        probe = (Self.launch(store, rows, until: isEnded), isEnded)
    }

    private static func launch(
        _ store: ModelStore<Ledger<Table>>, _ rows: Int, until isEnded: Flag
    ) -> Task<[UInt64], any Error> {
        Task {
            var times: [UInt64] = []
            while !isEnded.isSet.load(ordering: .relaxed) {
                let start = monotonicNanoseconds()
                let handle = store.dispatch(.turn(times.count, rows: rows))
                _ = try await handle.receipt()
                times.append(monotonicNanoseconds() - start)
            }
            return times
        }
    }

    private func endProbe() async throws -> [UInt64] {
        guard let probe else { throw BenchError("there is no probe") }
        self.probe = nil
        probe.isEnded.isSet.store(true, ordering: .relaxed)
        return try await probe.task.value
    }
}
