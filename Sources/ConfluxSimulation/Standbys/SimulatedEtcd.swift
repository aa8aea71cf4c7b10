import ConfluxEtcd
import ConfluxVocabulary

/// What an etcd is to a log: keys with values, and transactions, each of which is carried out as a whole.
final class SimulatedEtcd {
    /// *Invariant*: ascending.
    private var keys: [String] = []
    private var values: [String: Bytes] = [:]
    private var revision: UInt64 = 1
    /// Told behind each transaction which keys it has changed.
    var changed: (Set<String>) -> Void = { _ in }

    /// Carries out a transaction.
    func apply(_ transaction: EtcdTransaction) -> EtcdAnswer {
        let succeeds = transaction.comparisons.allSatisfy(holds)
        let operations = succeeds ? transaction.success : transaction.failure
        var written: Set<String> = []
        var pairs: [[EtcdPair]] = []
        for operation in operations {
            switch operation {
            case .read(let range, let limit, _, let revision):
                precondition(revision == 0, "no log reads history")
                let found = indexes(of: range)
                let most = limit == 0 ? found.count : min(limit, found.count)
                pairs.append(
                    found.prefix(most).map { EtcdPair(keys[$0], values[keys[$0]] ?? []) })
            case .put(let key, let value):
                put(key, value)
                written.insert(key)
                pairs.append([])
            case .delete(let range):
                let found = indexes(of: range)
                for key in keys[found] {
                    values[key] = nil
                    written.insert(key)
                }
                keys.removeSubrange(found)
                pairs.append([])
            }
        }
        if !written.isEmpty { revision += 1 }
        let answer = EtcdAnswer(revision: revision, succeeded: succeeds, pairs: pairs)
        if !written.isEmpty { changed(written) }
        return answer
    }

    private func holds(_ comparison: EtcdTransaction.Comparison) -> Bool {
        switch comparison {
        case .value(let key, let value): values[key] == value
        case .absent(let range): indexes(of: range).isEmpty
        }
    }

    private func put(_ key: String, _ value: Bytes) {
        // A copy, since a slice would keep all of what it was cut from.
        if values.updateValue(Array(value)[...], forKey: key) == nil {
            keys.insert(key, at: index(of: key))
        }
    }

    private func indexes(of range: EtcdRange) -> Range<Int> {
        let first = index(of: range.first)
        guard let end = range.end else {
            return first..<(values[range.first] == nil ? first : first + 1)
        }
        return first..<max(first, index(of: end))
    }

    /// Where the first key is that does not come before this one.
    private func index(of key: String) -> Int {
        var (low, high) = (0, keys.count)
        while low < high {
            let middle = (low + high) / 2
            if keys[middle] < key { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

/// What becomes of a request on its way to an etcd and back.
enum EtcdFate {
    case done
    /// It was heard, its answer was lost, and so it was made again.
    case heardTwice
    /// It was heard, and another copy of it is, later.
    case doubled
    /// Nobody has heard it.
    case unheard
    /// It was heard, and nobody knows.
    case unknown
    /// It is heard later, when nobody waits for it any more.
    case late
}

/// One process's way to the etcd.
// Sendable: all of a simulation happens on one thread.
final class SimulatedEtcdLink: EtcdStore, @unchecked Sendable {
    private let etcd: SimulatedEtcd
    private let clock: () -> Duration
    private let fate: () -> EtcdFate
    private let postpone: (EtcdTransaction) -> Void

    /// Makes one.
    ///
    /// - Parameters:
    ///   - etcd: Whereto.
    ///   - clock: Tells the process's time.
    ///   - fate: Asked of each request.
    ///   - postpone: Given what is heard later.
    init(
        to etcd: SimulatedEtcd, clock: @escaping () -> Duration, fate: @escaping () -> EtcdFate,
        postpone: @escaping (EtcdTransaction) -> Void
    ) {
        self.etcd = etcd
        self.clock = clock
        self.fate = fate
        self.postpone = postpone
    }

    var now: Duration { clock() }

    // Nobody waits here.
    func limit(answer: Duration, call: Duration) {}


    func transact(_ transaction: EtcdTransaction) throws(EtcdFailure) -> EtcdAnswer {
        switch fate() {
        case .done: return etcd.apply(transaction)
        case .heardTwice:
            _ = etcd.apply(transaction)
            return etcd.apply(transaction)
        case .doubled:
            postpone(transaction)
            return etcd.apply(transaction)
        case .unheard: throw EtcdFailure(.unreachable, "the simulated etcd does not answer")
        case .unknown: _ = etcd.apply(transaction)
        case .late: postpone(transaction)
        }
        throw EtcdFailure(
            .unreachable, "the answer of the simulated etcd was lost", mayHaveHappened: true)
    }

    func compact(to revision: UInt64, isAwaited: Bool) {}

    func status() -> EtcdStatus { EtcdStatus() }
}
