import ConfluxEtcd
import ConfluxVocabulary

/// The part of an etcd that a log needs: keys with values, and atomic transactions.
final class SimulatedEtcd {
    /// *Invariant*: ascending.
    private var keys: [String] = []
    private var values: [String: Bytes] = [:]
    private var revision: UInt64 = 1
    /// Called after each transaction with the keys that it has changed.
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
        // Copy: a slice would keep the whole buffer that it was cut from.
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

    /// The index of the first key that is not below this one.
    private func index(of key: String) -> Int {
        keys.partitioningIndex { $0 >= key }
    }
}

/// What happens to a request to an etcd and to its answer.
enum EtcdFate {
    case done
    /// It was received, its answer was lost, and so it was sent again.
    case heardTwice
    /// It is received, and a duplicate is received later.
    case doubled
    /// It is not received.
    case unheard
    /// It is received, but its sender never learns that.
    case unknown
    /// It is received after its sender has stopped waiting.
    case late
}

/// One process's connection to the etcd.
// Sendable: a simulation runs on a single thread.
final class SimulatedEtcdLink: EtcdStore, @unchecked Sendable {
    private let etcd: SimulatedEtcd
    private let clock: () -> Duration
    private let status: () -> EtcdFate
    private let postpone: (EtcdTransaction) -> Void

    /// Makes a link.
    ///
    /// - Parameters:
    ///   - etcd: The etcd.
    ///   - clock: The process's clock.
    ///   - status: Called for each request, and returns what happens to it.
    ///   - postpone: Gets requests that are received later.
    init(
        to etcd: SimulatedEtcd, clock: @escaping () -> Duration, status: @escaping () -> EtcdFate,
        postpone: @escaping (EtcdTransaction) -> Void
    ) {
        self.etcd = etcd
        self.clock = clock
        self.status = status
        self.postpone = postpone
    }

    var now: Duration { clock() }

    // Calls take no real time here.
    func limit(answer: Duration, call: Duration) {}

    func transact(_ transaction: EtcdTransaction) throws(EtcdFailure) -> EtcdAnswer {
        switch status() {
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

    // It has room for everything.
    func nextMember() -> EtcdMember? { EtcdMember("simulated", EtcdStatus()) }

    func members() -> [EtcdMember] { [EtcdMember("simulated", EtcdStatus())] }

    func defragment(_ member: String) {}

    func disarm() {}
}
