import ConfluxVocabulary

/// Which replicas failed to send a state for which they had voted, as far as this term knows.
///
/// *Use*: the order in which replicas are asked for a snapshot. A replica that lies, or that is too slow, would
/// otherwise be asked first at each digest point, and no snapshot would be taken again. A failure is never
/// forgotten as long as the session lasts, but those that failed since are asked later still. So a replica that
/// was only slow once is asked again.
struct SourceFailures: Sendable {
    /// The number of each session's last failure. *Invariant*: none is 0.
    private var bySession: [Incarnation: UInt64] = [:]
    /// The same for each key. *Use*: a process that starts again has another session, and the same key.
    private var byKey: [Name: UInt64] = [:]
    private var count: UInt64 = 0

    /// A source has failed.
    mutating func add(_ source: SnapshotUpload.Source) {
        count += 1
        bySession[source.incarnation] = count
        if case .key(let name) = source.sharer { byKey[name] = count }
    }

    /// Forgets the sessions that are no longer remembered.
    mutating func keep(_ isKept: (Incarnation) -> Bool) {
        bySession = bySession.filter { isKept($0.key) }
    }

    /// The sources in the order in which they are asked.
    func ordered(_ sources: [SnapshotUpload.Source]) -> [SnapshotUpload.Source] {
        func rank(_ source: SnapshotUpload.Source) -> (UInt64, UInt64, UInt64) {
            var ofKey: UInt64 = 0
            if case .key(let name) = source.sharer { ofKey = byKey[name] ?? 0 }
            return (bySession[source.incarnation] ?? 0, ofKey, source.incarnation.rawValue)
        }
        return sources.sorted { rank($0) < rank($1) }
    }
}
