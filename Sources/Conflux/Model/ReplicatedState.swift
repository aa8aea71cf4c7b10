import ConfluxVocabulary

/// A state whose global actions can be sent to other processes.
///
/// Its name means the same state in every process. A node's bridge sends the actions of
/// `Store<S>.actions` to the sequencer, and delivers them in the log's order to every store of the
/// state.
///
/// A node may decode actions on several threads at a time. So an action's `init(from:)` must depend only on the
/// decoder.
public protocol BridgedState: State where Action: Codable & Sendable {
    /// The state's name: 1 to 64 characters of `a-z 0-9 . _ -`, the same in every process.
    static var name: String { get }
    /// The version of the actions' and the snapshot's form, and of the rules; 1 unless stated. Raise it
    /// when the form changes in a way that older programs can't read, or when actions are judged
    /// differently, and make sure that ``ReplicatedState/migrate(_:from:)`` can read what older programs wrote.
    static var schemaVersion: Int { get }
    /// The oldest version as which this program can host a store; ``schemaVersion`` unless stated.
    ///
    /// A store has one version for all processes. As long as that is an older one, this program judges actions by the
    /// rules of that version (``ActionContext/schemaVersion``), and saves the state in its form
    /// (``ReplicatedState/revert(_:to:)``). So programs of the former version can go on beside this one, while they are
    /// replaced one by one.
    static var oldestSchemaVersion: Int { get }
    /// The version that an action needs; ``oldestSchemaVersion`` unless stated.
    ///
    /// A store of an older version does not take the action: the dispatch is rejected. So state here which actions
    /// programs of an older version can't decode.
    ///
    /// - Parameter action: An action.
    /// - Returns: The oldest version of the program that can decode it.
    static func schemaVersion(of action: Action) -> Int
    /// How the state's actions are encoded when dispatched here; `PayloadCoding.json` unless
    /// stated. Every process reads every coding. For hundreds of thousands of actions a second,
    /// choose `PayloadCoding.compact`, and make the actions adopt `CompactCodable`.
    static var coding: PayloadCoding { get }
}

extension BridgedState {
    /// The first version.
    public static var schemaVersion: Int { 1 }
    /// The present version.
    public static var oldestSchemaVersion: Int { schemaVersion }
    /// The oldest version.
    public static func schemaVersion(of action: Action) -> Int { oldestSchemaVersion }
    /// JSON: readable in the log.
    public static var coding: PayloadCoding { .json }
}

/// A state that can be the same in every process: restored from snapshots, digested, archived.
///
/// Its mutations must depend only on the action, the state and the ``ActionContext``: no clock, no
/// system randomness, nothing of the process.
public protocol ReplicatedState: BridgedState {
    /// All that the state consists of, as a value.
    associatedtype Snapshot: Codable & Sendable

    /// Makes the state as it is before the first action.
    init()

    /// Commits the state's actions, in every process alike.
    static var mutations: Mutations { get }

    /// All that the state consists of. Read and set by the thread that serves the store's lane.
    var snapshot: Snapshot { get set }

    /// Makes a snapshot of this version from one that an older version of the program wrote.
    ///
    /// Called wherever such a snapshot is loaded, in every process alike; so it must depend on
    /// nothing but its arguments. Unless implemented, the old snapshot is decoded as a present one.
    /// That is enough if properties were removed, or added as optional ones. Here are two more
    /// ways, for a state whose snapshot had only a `left` at first, and has had a `count` since
    /// version 2:
    ///
    /// ```swift
    /// static func migrate(_ old: SnapshotReader, from version: Int) throws -> Snapshot {
    ///     if version < 2 {
    ///         struct First: Decodable { var left: Int }
    ///         return Snapshot(count: try old.decode(First.self).left)   // it has another name now
    ///     }
    ///     return try old.decode(filling: Snapshot())                    // there is more now
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - old: The snapshot as it was written.
    ///   - version: The ``BridgedState/schemaVersion`` of the program that wrote it: less than the
    ///     present one.
    /// - Returns: The same state in the present form.
    /// - Throws: Why there is none. The store then can't be opened here, and says so; nothing else
    ///   is changed.
    static func migrate(_ old: SnapshotReader, from version: Int) throws -> Snapshot

    /// Makes what a program of an older version would have encoded: the counterpart of ``migrate(_:from:)``.
    ///
    /// Called while a store has an older version than this program, and so only if there is an
    /// ``BridgedState/oldestSchemaVersion``. It must depend on nothing but its arguments, and give what that program
    /// would have: migrated again, it must be the same. Unless implemented, the snapshot is encoded as it is. That is
    /// enough if only rules have changed, or if new properties are optional and nil as long as the version is older.
    ///
    /// ```swift
    /// static func revert(_ snapshot: Snapshot, to version: Int) -> any Encodable & Sendable {
    ///     struct First: Encodable { var left: Int }
    ///     return First(left: snapshot.count)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - snapshot: The state in the present form.
    ///   - version: The version in force: less than the present one.
    /// - Returns: The same state in the form of that version.
    /// - Throws: Why there is none. Then no snapshot of the store is taken here.
    static func revert(_ snapshot: Snapshot, to version: Int) throws -> any Encodable & Sendable

    /// Called by a node before it replicates the state. There is no reason to implement it.
    static func _willReplicate()
}

extension ReplicatedState {
    /// Does nothing.
    public static func _willReplicate() {}

    /// Decodes the old snapshot as a present one.
    public static func migrate(_ old: SnapshotReader, from version: Int) throws -> Snapshot {
        try old.decode()
    }

    /// The snapshot as it is.
    public static func revert(
        _ snapshot: Snapshot, to version: Int
    ) throws -> any Encodable & Sendable { snapshot }
}
