import ConfluxLog
import ConfluxVocabulary

/// What a log says of itself when it is opened.
struct EtcdBeginning {
    let log: LogID
    let end: EtcdEnd
    let floor: EtcdFloor

    /// Reads it; begins a log where etcd has no key below the prefix.
    ///
    /// - Throws: As ``EtcdLog/init(_:)``.
    init(_ reading: EtcdReading, at address: EtcdAddress) throws(LogError) {
        let layout = reading.layout
        let attempt = "Opening the log at \(address)"
        var found = try reading.look(Self.reads(layout), attempt)
        if found.pair(0) == nil, found.pair(3) == nil {
            try Self.begin(reading, attempt)
            found = try reading.look(Self.reads(layout), attempt)
        }
        guard let pair = found.pair(0) else { throw .foreignKeys(address, found.pair(3)?.key) }
        guard let meta = EtcdMeta(pair.value, at: layout.meta) else {
            throw .foreignKeys(address, pair.key)
        }
        guard meta.version <= EtcdLayout.version else {
            throw LogError(
                .newerFormat,
                "A newer version of this program wrote the log at \(address), in format "
                    + "\(meta.version); this one knows format \(EtcdLayout.version). Use the newer one."
            )
        }
        guard let pair = found.pair(1), let end = EtcdEnd(pair.value, at: layout.end) else {
            throw .damagedKey(layout.end)
        }
        guard let pair = found.pair(2), let floor = EtcdFloor(pair.value, at: layout.floor) else {
            throw .damagedKey(layout.floor)
        }
        log = meta.log
        self.end = end
        self.floor = floor
    }

    private static func reads(_ layout: EtcdLayout) -> [EtcdTransaction.Operation] {
        [
            .read(.key(layout.meta)), .read(.key(layout.end)), .read(.key(layout.floor)),
            .read(layout.all, limit: 1, keysOnly: true),
        ]
    }

    /// Where two programs begin a log at once, one of them does.
    private static func begin(_ reading: EtcdReading, _ attempt: String) throws(LogError) {
        let layout = reading.layout
        let log = reading.newLog ?? .random()
        let genesis = ChainHash.genesis(of: log)
        let end = EtcdEnd(last: .zero, epoch: .none, hash: genesis)
        let floor = EtcdFloor(first: SequenceNumber(1), hash: genesis)
        let tenure = EtcdTenure(epoch: .none, nonce: .random())
        let meta = EtcdMeta(version: EtcdLayout.version, log: log)
        do throws(EtcdFailure) {
            _ = try reading.client.transact(
                EtcdTransaction(
                    comparisons: [.absent(layout.all)],
                    success: [
                        .put(layout.meta, meta.value(at: layout.meta)),
                        .put(layout.epoch, tenure.value(at: layout.epoch)),
                        .put(layout.end, end.value(at: layout.end)),
                        .put(layout.floor, floor.value(at: layout.floor)),
                    ], failure: [.read(.key(layout.meta))]))
        } catch {
            throw LogError(error, attempt)
        }
    }
}

extension LogError {
    fileprivate static func foreignKeys(_ address: EtcdAddress, _ key: String?) -> LogError {
        LogError(
            .notALog,
            "etcd has keys below \(address.prefix)/ that are not those of a Conflux log"
                + (key.map { ", as \($0)" } ?? "") + ". Give another prefix.")
    }
}
