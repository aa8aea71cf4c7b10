import ConfluxVocabulary

/// Carries out transactions for a log: an etcd cluster, or its replacement in a simulation.
///
/// Confined to one thread at a time.
package protocol EtcdStore: AnyObject {
    /// The time of a monotonic clock.
    var now: Duration { get }

    /// Sets the time limits for one member, and for all of them together, from now on.
    func limit(answer: Duration, call: Duration)

    /// Carries out a transaction.
    ///
    /// - Returns: The answer. If the transaction was applied but its answer was lost, `succeeded` is false:
    ///   what the failure branch reads shows that it was applied.
    /// - Throws: ``EtcdFailure``.
    func transact(_ transaction: EtcdTransaction) throws(EtcdFailure) -> EtcdAnswer

    /// Compacts the history of values before a revision.
    ///
    /// - Parameters:
    ///   - revision: The first revision whose values stay.
    ///   - isAwaited: Whether to wait until the space is free.
    /// - Throws: ``EtcdFailure``.
    func compact(to revision: UInt64, isAwaited: Bool) throws(EtcdFailure)

    /// The member that is asked next, and its space; nil if nobody answers.
    func nextMember() -> EtcdMember?

    /// The members that answer, and their space.
    func members() -> [EtcdMember]

    /// Rewrites the file of a member without its free pages. The member answers nothing else meanwhile.
    ///
    /// - Throws: ``EtcdFailure``; `denied` if the user may not do that.
    func defragment(_ member: String) throws(EtcdFailure)

    /// Clears the alarm `NOSPACE` of all members.
    ///
    /// - Throws: ``EtcdFailure``; `denied` if the user may not do that.
    func disarm() throws(EtcdFailure)
}

/// The replacement of etcd in a simulation. Two with the same log are equal.
package struct EtcdImitation: Sendable, Hashable {
    /// The id of a log that begins there.
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
