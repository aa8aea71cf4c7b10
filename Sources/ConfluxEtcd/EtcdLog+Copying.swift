import ConfluxLog
import ConfluxVocabulary

extension EtcdLog {
    /// Opens a log to copy it. Unlike ``init(_:)`` it begins none.
    ///
    /// - Parameter settings: Where it is, and how it is reached.
    /// - Throws: Like ``init(_:)``; `notALog` as well where no log is there.
    public convenience init(copied settings: EtcdLogSettings) throws(LogError) {
        try self.init(settings, for: .copying)
    }

    /// Begins a copy of a log below a prefix. Until ``adopt(after:)`` no program takes it for a log.
    ///
    /// - Parameters:
    ///   - origin: What the log begins with.
    ///   - settings: Where the copy is, and how it is reached. An unfinished copy there is removed.
    /// - Throws: Like ``init(_:)``; `inUse` where a log is there already.
    public convenience init(
        copyWith origin: LogOrigin, _ settings: EtcdLogSettings
    ) throws(LogError) {
        try self.init(settings, for: .copy(of: origin))
    }

    /// Where the log begins now.
    ///
    /// - Throws: `damaged`, `unreachable`, `denied`, `failed`, `closed`.
    public func origin() throws(LogError) -> LogOrigin {
        let beginning = try openReading().floor()
        return LogOrigin(log: id, floor: beginning.first, hash: beginning.hash)
    }

    /// The hash of the last commit.
    public var head: ChainHash? { tenure?.end.hash }

    /// Makes a copy a log, in one transaction; then closes it.
    ///
    /// - Parameter confirm: Called right before that. What it throws leaves the copy unfinished.
    /// - Throws: `superseded`, `full`, `failed`, `unreachable`, `denied`, `notClaimed`, `closed`; `unknownOutcome` where
    ///   it may be the log.
    public func adopt(after confirm: () throws(LogError) -> Void) throws(LogError) {
        let key = try openReading().layout.meta
        try confirm()
        let meta = EtcdMeta(version: EtcdLayout.version, log: id)
        try change([.put(key, meta.value(at: key))], "Ending the copy")
        close()
    }
}
