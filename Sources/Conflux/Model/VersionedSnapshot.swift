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

    /// Checks that a state that was migrated can be given back as the older version that its store has. Otherwise this
    /// program would host another state than programs of that version.
    ///
    /// - Parameters:
    ///   - snapshot: The state, as it was migrated.
    ///   - bytes: The bytes of which it was made: JSON.
    ///   - version: Their version; nothing is checked if the program can't host it, or if it is the present one.
    /// - Throws: `migrationFailed`, with the place that differs.
    package static func checkReversal(
        of snapshot: Snapshot, to bytes: some Sequence<UInt8>, _ version: Int
    ) throws(StoreError) {
        guard version < schemaVersion, version >= oldestSchemaVersion else { return }
        var place: JSONPointer?
        do {
            let back = try encode(snapshot, as: version)
            if back.elementsEqual(bytes) { return }
            place = try JSONValue(json: bytes).firstDifference(from: JSONValue(json: back))
            if place == nil { return }
        } catch {
            throw StoreError(
                .migrationFailed,
                """
                A snapshot of \(name) can't be given back as schema version \(version): \(error). Let \
                revert(_:to:) undo migrate(_:from:), or raise oldestSchemaVersion.
                """, error)
        }
        let words = place.map { $0.tokens.isEmpty ? "" : " at \($0)" } ?? ""
        throw StoreError(
            .migrationFailed,
            """
            This program gives another snapshot of \(name) back as schema version \(version) than it was given\(words). \
            Let revert(_:to:) undo migrate(_:from:), and let both depend on nothing but their arguments.
            """)
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
