import ConfluxVocabulary

/// What carries out transactions for a log: an etcd, or what stands for one in a simulation.
///
/// Confined to one thread at a time.
package protocol EtcdStore: AnyObject {
    /// The time, on a clock that only rises.
    var now: Duration { get }

    /// Sets how long one member, and all of them together, may take from now on.
    func limit(answer: Duration, call: Duration)

    /// Carries out a transaction.
    ///
    /// - Returns: What came of it. One that was applied while its answer was lost has not succeeded: what its other
    ///   branch reads tells.
    /// - Throws: ``EtcdFailure``.
    func transact(_ transaction: EtcdTransaction) throws(EtcdFailure) -> EtcdAnswer

    /// Gives up the history of values before a revision.
    ///
    /// - Parameters:
    ///   - revision: The first revision whose values stay.
    ///   - isAwaited: Whether to wait until the space is free.
    /// - Throws: ``EtcdFailure``.
    func compact(to revision: UInt64, isAwaited: Bool) throws(EtcdFailure)

    /// What a member says of its space.
    ///
    /// - Throws: ``EtcdFailure``.
    func status() throws(EtcdFailure) -> EtcdStatus
}

/// What stands for etcd in a simulation. Two of one log are the same.
package struct EtcdImitation: Sendable, Hashable {
    /// What the log is called that begins there.
    package let log: LogID
    /// Makes a connection.
    package let connect: @Sendable () -> any EtcdStore

    package init(of log: LogID, connect: @escaping @Sendable () -> any EtcdStore) {
        self.log = log
        self.connect = connect
    }

    package static func == (first: EtcdImitation, second: EtcdImitation) -> Bool {
        first.log == second.log
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(log) }
}
