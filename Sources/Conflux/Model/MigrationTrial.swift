extension ReplicatedState {
    /// Makes a present snapshot of another one, as a store that loads it would, and tells what changes. Nothing else
    /// changes.
    ///
    /// - Parameters:
    ///   - bytes: The snapshot: JSON in UTF-8.
    ///   - version: The schema version of the program that wrote it.
    /// - Returns: The changes, in the order of keys and positions; none if both are the same JSON.
    /// - Throws: Why the store could not be opened. The code is `migrationFailed`, too, if two migrations of the same
    ///   snapshot differ, if this program can't give the snapshot back as an older version that it can host, or if the result can't be encoded, or comes back from its encoding as another one.
    package static func changesByMigration(
        of bytes: [UInt8], from version: Int
    ) throws(StoreError) -> [JSONChange] {
        let old: JSONValue
        do {
            old = try JSONValue(json: bytes)
        } catch {
            throw StoreError(
                .incompatible,
                "The snapshot of \(name) is no JSON: \(error). Take what conflux observe shows.",
                error)
        }
        let migrated = try snapshot(from: bytes, version: version)
        let new = try encoded(migrated, version)
        let again = try encoded(try snapshot(from: bytes, version: version), version)
        if let place = new.firstDifference(from: again) {
            throw StoreError(
                .migrationFailed,
                """
                Two migrations of the same snapshot of \(name) differ\(inWords(place)). Replicas would \
                differ like this: let migrate(_:from:) depend on nothing but its arguments.
                """)
        }
        try checkReversal(of: migrated, to: bytes, version)
        let loaded: Snapshot
        do throws(CodingFailure) {
            loaded = try CanonicalCoder().decode(Snapshot.self, from: new.canonicalBytes())
        } catch {
            throw StoreError(
                .migrationFailed,
                """
                The migrated snapshot of \(name) can't be loaded again: \(error). Correct how its type \
                encodes itself.
                """, error)
        }
        if let place = new.firstDifference(from: try encoded(loaded, version)) {
            throw StoreError(
                .migrationFailed,
                """
                The migrated snapshot of \(name) differs\(inWords(place)) once it is encoded and loaded \
                again. Correct how its type encodes itself.
                """)
        }
        return old.changes(to: new)
    }

    private static func encoded(
        _ snapshot: Snapshot, _ version: Int
    ) throws(StoreError) -> JSONValue {
        do {
            return try JSONValue(json: CanonicalCoder().encode(snapshot))
        } catch {
            throw StoreError(
                .migrationFailed,
                """
                The snapshot of \(name), migrated from schema version \(version), can't be encoded: \
                \(error). Correct how its type encodes itself, or what migrate(_:from:) makes.
                """, error)
        }
    }

    private static func inWords(_ place: JSONPointer) -> String {
        place.tokens.isEmpty ? "" : " at \(place)"
    }
}
