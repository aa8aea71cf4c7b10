import ConfluxVocabulary
import Synchronization

/// A state's snapshot in the forms of the versions that the program understands (rule 17). In memory it always has the
/// present form.
extension ReplicatedState {
    /// The canonical encoding of a snapshot, as a version has it.
    ///
    /// - Parameters:
    ///   - snapshot: The snapshot.
    ///   - version: The version; at most the present one.
    /// - Returns: The bytes.
    /// - Throws: `CodingFailure`, or what ``revert(_:to:)`` throws.
    package static func encode(_ snapshot: Snapshot, as version: Int) throws -> [UInt8] {
        guard version < schemaVersion else { return try CanonicalCoder().encode(snapshot) }
        return try CanonicalCoder().encode(revert(snapshot, to: version))
    }
}

extension Store where State: ReplicatedState {
    /// The schema version by whose rules actions are judged at present: the same in every process, and less than
    /// the state's ``BridgedState/schemaVersion`` until every program understands that (see
    /// ``BridgedState/oldestSchemaVersion``). Read on any thread.
    public var schemaVersion: Int {
        let version = core.versionInForce.load(ordering: .acquiring)
        return version == 0 ? State.schemaVersion : version
    }
}
