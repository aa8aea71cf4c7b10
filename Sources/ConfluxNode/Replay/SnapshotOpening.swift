import Conflux
import ConfluxProtocol

extension ReplicatedState {
    /// Reads a snapshot as a store that begins with it does, and keeps nothing of it.
    ///
    /// - Parameters:
    ///   - snapshot: The snapshot.
    ///   - version: The schema version in force, and the digest that the snapshot must have in its form.
    /// - Throws: Why the store could not begin with it.
    package static func tryOpening(
        with snapshot: ConfluxProtocol.Snapshot, in version: VersionInForce
    ) throws(StoreError) {
        _willReplicate()
        let core = StoreCore<Self>(
            state: Self(), mutations: mutations, executor: .immediate, scope: Scope(), seed: 0)
        do {
            _ = try ReplicaLane(of: core).decode(snapshot, version)
        } catch let error as StoreError {
            throw error
        } catch {
            throw StoreError(
                .migrationFailed,
                """
                The snapshot of \(name) at \(snapshot.sequence) can't be encoded in the form of schema version \
                \(version.version), which is in force: \(error). Correct revert(_:to:), or how its type encodes itself.
                """, error)
        }
    }
}
