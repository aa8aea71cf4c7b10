import ConfluxLog

extension EtcdLog {
    /// Opens a log to copy it. Unlike ``init(_:)`` it never begins a new one.
    ///
    /// - Parameter settings: The log's address, and how to connect.
    /// - Throws: Like ``init(_:)``; also `notALog` if there is no log.
    public convenience init(copied settings: EtcdLogSettings) throws(LogError) {
        try self.init(settings, for: .copying)
    }

    /// Begins a copy of a log below a prefix. Until ``adopt(after:)`` no program takes it for a log.
    ///
    /// - Parameters:
    ///   - origin: The origin of the log.
    ///   - settings: The copy's address, and how to connect. An unfinished copy there is removed.
    /// - Throws: Like ``init(_:)``; `inUse` if there is a log already.
    public convenience init(
        copyWith origin: LogOrigin, _ settings: EtcdLogSettings
    ) throws(LogError) {
        try self.init(settings, for: .copy(of: origin))
    }

    /// The origin of the log as it is now.
    ///
    /// - Throws: `damaged`, `unreachable`, `denied`, `failed`, `closed`.
    public func origin() throws(LogError) -> LogOrigin {
        let beginning = try openReading().floor()
        return LogOrigin(log: id, floor: beginning.first, hash: beginning.hash)
    }

    /// The hash of the last commit.
    public var head: ChainHash? { term?.end.hash }

    /// Makes a copy a log, in one transaction, and closes it.
    ///
    /// - Parameter confirm: Called right before the transaction. If it throws, the copy remains unfinished.
    /// - Throws: `superseded`, `full`, `failed`, `unreachable`, `denied`, `notClaimed`, `closed`;
    ///   `unknownOutcome` if it may be a log.
    public func adopt(after confirm: () throws(LogError) -> Void) throws(LogError) {
        let key = try openReading().layout.meta
        try confirm()
        let meta = EtcdMeta(version: EtcdLayout.version, log: id)
        try change([.put(key, meta.value(at: key))], "Ending the copy")
        close()
    }
}
