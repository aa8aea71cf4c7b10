import ConfluxLog
import ConfluxVocabulary

/// The state of a log when it is opened.
struct EtcdBeginning {
    let log: LogID
    let end: EtcdEnd
    let floor: EtcdFloor

    /// Why a log is opened.
    enum Purpose {
        /// To serve it. If etcd has no key below the prefix, a new log begins.
        case service
        /// To copy it. It must exist.
        case copying
        /// To write a copy. At most an unfinished copy may exist; it is removed.
        case copy(of: LogOrigin)
    }

    /// Reads the state. If etcd has no key below the prefix, begins a log or a copy of one.
    ///
    /// - Throws: Like ``EtcdLog/init(_:)``.
    init(
        _ reading: EtcdReading, at address: EtcdAddress, for purpose: Purpose
    ) throws(LogError) {
        let layout = reading.layout
        let attempt = "Opening the log at \(address)"
        var found = try reading.look(Self.reads(layout), attempt)
        if case .copy(let origin) = purpose, let pair = found.pair(0) {
            let meta = EtcdMeta(pair.value, at: layout.meta)
            guard meta?.copy != nil else {
                throw .alreadyThere(address, isSame: meta?.log == origin.log)
            }
            try Self.remove(reading, pair.value, attempt)
            found = try reading.look(Self.reads(layout), attempt)
        }
        if found.pair(0) == nil, found.pair(3) == nil {
            switch purpose {
            case .service: try Self.begin(.new(reading.newLog ?? .random()), nil, reading, attempt)
            case .copying: throw .noLog(address)
            case .copy(let origin): try Self.begin(origin, .random(), reading, attempt)
            }
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
        guard meta.version == EtcdLayout.version else {
            throw LogError(
                .olderFormat,
                "The log at \(address) has format \(meta.version), from before the first release; this "
                    + "program reads format \(EtcdLayout.version) only. Begin a log at another prefix."
            )
        }
        guard let pair = found.pair(1), let end = EtcdEnd(pair.value, at: layout.end) else {
            throw .damagedKey(layout.end)
        }
        guard let pair = found.pair(2), let floor = EtcdFloor(pair.value, at: layout.floor) else {
            throw .damagedKey(layout.floor)
        }
        switch purpose {
        case .copy(let origin):
            // Another program may have begun it first.
            guard meta.copy != nil, meta.log == origin.log, floor.first == origin.floor,
                floor.hash == origin.hash
            else { throw .alreadyThere(address, isSame: false) }
        case .service, .copying: if meta.copy != nil { throw .unfinished(address) }
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

    /// Begins a log. If two programs begin it at once, one of them succeeds.
    private static func begin(
        _ origin: LogOrigin, _ copy: Nonce?, _ reading: EtcdReading, _ attempt: String
    ) throws(LogError) {
        let layout = reading.layout
        let before = SequenceNumber(origin.floor.rawValue - 1)
        let end = EtcdEnd(last: before, epoch: .none, hash: origin.hash)
        let floor = EtcdFloor(first: origin.floor, hash: origin.hash)
        let term = EtcdTerm(epoch: .none, nonce: .random())
        let meta = EtcdMeta(
            version: EtcdLayout.version, log: origin.log, copy: copy)
        do throws(EtcdFailure) {
            _ = try reading.client.transact(
                EtcdTransaction(
                    comparisons: [.absent(layout.all)],
                    success: [
                        .put(layout.meta, meta.value(at: layout.meta)),
                        .put(layout.epoch, term.value(at: layout.epoch)),
                        .put(layout.end, end.value(at: layout.end)),
                        .put(layout.floor, floor.value(at: layout.floor)),
                    ], failure: [.read(.key(layout.meta))]))
        } catch {
            throw LogError(error, attempt)
        }
    }

    /// Removes an unfinished copy, unless it has become a log or another copy meanwhile.
    private static func remove(
        _ reading: EtcdReading, _ meta: Bytes, _ attempt: String
    ) throws(LogError) {
        let layout = reading.layout
        do throws(EtcdFailure) {
            _ = try reading.client.transact(
                EtcdTransaction(
                    comparisons: [.value(layout.meta, meta)],
                    success: layout.own.map { .delete($0) },
                    failure: [.read(.key(layout.meta))]))
        } catch {
            throw LogError(error, attempt)
        }
    }
}

extension LogError {
    fileprivate static func alreadyThere(_ address: EtcdAddress, isSame: Bool) -> LogError {
        LogError(
            .inUse,
            isSame
                ? "The log is at \(address) already: it was moved or copied there before. Start its "
                    + "sequencers there, or give another prefix."
                : "There is a log at \(address) already. Give a prefix without one.")
    }

    fileprivate static func noLog(_ address: EtcdAddress) -> LogError {
        LogError(.notALog, "There is no log at \(address). Give the address of one.")
    }

    fileprivate static func unfinished(_ address: EtcdAddress) -> LogError {
        LogError(
            .notALog,
            "At \(address) there is a copy of a log that is not finished. If no \"conflux migrate\" is "
                + "writing it, run that again: it starts over. Then serve this log.")
    }

    fileprivate static func foreignKeys(_ address: EtcdAddress, _ key: String?) -> LogError {
        LogError(
            .notALog,
            "etcd has keys below \(address.prefix)/ that are not those of a Conflux log"
                + (key.map { ", as \($0)" } ?? "") + ". Give another prefix.")
    }
}
