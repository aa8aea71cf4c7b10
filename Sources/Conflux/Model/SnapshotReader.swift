/// A state's snapshot as another version of the program wrote it.
/// ``ReplicatedState/migrate(_:from:)`` makes a present one of it.
///
/// A migration may read it several times, as several types. Fields that a type does not ask for
/// are ignored, so a removed property needs no migration.
public struct SnapshotReader: Sendable {
    /// The snapshot as it was stored: JSON in UTF-8, canonical.
    public let bytes: [UInt8]

    /// Makes a reader, for example to test a migration.
    ///
    /// - Parameter bytes: A snapshot that `CanonicalCoder` encoded, or any other JSON.
    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Decodes the snapshot as a type: the present one, or the one of that version.
    ///
    /// - Parameter type: The type.
    /// - Returns: The value.
    /// - Throws: What was expected, and where.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self
    ) throws(CodingFailure) -> Value {
        try CanonicalCoder().decode(type, from: bytes)
    }

    /// Decodes the snapshot as a type with more properties than the snapshot: they get their
    /// values from `defaults`.
    ///
    /// ```swift
    /// static func migrate(_ old: SnapshotReader, from version: Int) throws -> Stock {
    ///     try old.decode(filling: Stock())
    /// }
    /// ```
    ///
    /// Parts of parts are filled in, too, at every depth. Only required properties are: a missing
    /// optional property is nil. A renamed property counts as a new one, and its old value is lost:
    /// decode the former type, and take the value from there.
    ///
    /// Nothing is filled in where `defaults` says nothing about a part: inside an element of a list,
    /// a set or a dictionary, inside the values of an enumeration's case, and inside an optional
    /// that is nil in `defaults`. If something is missing there, it is an error with its place:
    /// decode these parts as the type that they were.
    ///
    /// - Parameter defaults: A value whose parts stand for what is missing.
    /// - Returns: The value.
    /// - Throws: What was expected, and where. If there is no default for it, the message says so.
    /// - Complexity: Reads the snapshot once more for each property that is filled in.
    public func decode<Value: Codable>(filling defaults: Value) throws(CodingFailure) -> Value {
        try CanonicalCoder().decode(from: bytes, filling: defaults)
    }
}

extension ReplicatedState {
    /// The snapshot that bytes hold, in the present version.
    ///
    /// - Parameters:
    ///   - bytes: The snapshot's canonical encoding.
    ///   - version: The schema version of the program that wrote it.
    /// - Returns: The snapshot, migrated if an older version wrote it.
    /// - Throws: Why there is none. The code is `formChanged` if bytes of this version can't be read.
    package static func snapshot(
        from bytes: some Sequence<UInt8>, version: Int
    ) throws(StoreError) -> Snapshot {
        guard version != schemaVersion else {
            do {
                return try CanonicalCoder().decode(whole: Snapshot.self, from: bytes)
            } catch {
                throw changedForm(ofSnapshot: error)
            }
        }
        guard version < schemaVersion else {
            throw StoreError(
                .newerSnapshot,
                """
                The snapshot of \(name) has schema version \(version), and this program knows \
                \(schemaVersion). Run a newer program.
                """)
        }
        do {
            return try migrate(SnapshotReader(Array(bytes)), from: version)
        } catch {
            throw StoreError(
                .migrationFailed,
                """
                The snapshot of \(name) has schema version \(version) and can't become one of \
                version \(schemaVersion): \(error). Give \(name) a migrate(_:from:) that makes \
                one: decode what was then, or fill in what is new.
                """, error)
        }
    }
}
