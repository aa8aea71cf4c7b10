import Conflux
import Foundation

/// Migrates snapshots that older programs wrote, and tells what changes.
///
/// ```swift
/// @Test func `the first version gets a minimum`() throws {
///     let changes = try MigrationChecker(Stock.self).changes(in: #"{"left":7}"#, from: 1)
///     #expect(changes.map(\.description) == ["+ /minimum: 5"])
/// }
/// ```
///
/// A snapshot of a store in use is what `conflux observe STORE` shows. Keep it in a file beside the tests. To check all
/// stores in use, before you deploy a program, run its `upgrade --check`.
public struct MigrationChecker<State: ReplicatedState>: Sendable {
    /// Makes a checker of a state.
    public init(_ state: State.Type) {}

    /// Makes a checker of a model.
    public init<Model: Conflux.Model>(_ model: Model.Type) where State == ModelState<Model> {}

    /// Migrates a snapshot as a store that loads it would, and compares its JSON with the old one.
    ///
    /// It migrates twice, and also encodes the result and loads it again: both must give the same.
    ///
    /// - Parameters:
    ///   - json: The snapshot.
    ///   - version: The schema version of the program that wrote it. For the present version, the changes are what is
    ///     lost and what is added when this program loads it.
    /// - Returns: The changes by key path, in the order of keys and positions.
    /// - Throws: `StoreError`, as when such a store is opened.
    public func changes(
        in json: String, from version: Int
    ) throws(StoreError) -> [JSONChange] {
        try State.changesByMigration(of: Array(json.utf8), from: version)
    }

    /// Migrates a snapshot in a file, and compares its JSON with the old one.
    ///
    /// - Parameters:
    ///   - file: A file with the snapshot's JSON.
    ///   - version: The schema version of the program that wrote it.
    /// - Returns: The changes by key path, in the order of keys and positions.
    /// - Throws: `StoreError`, as when such a store is opened; Foundation's error if the file can't be read.
    public func changes(in file: URL, from version: Int) throws -> [JSONChange] {
        try State.changesByMigration(of: Array(Data(contentsOf: file)), from: version)
    }
}
