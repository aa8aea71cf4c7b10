import ConfluxVocabulary

/// A state described as a value.
///
/// ```swift
/// struct Stock: Model {
///     static let name = "stock"
///     var left = 0
///     enum Action: Codable, Sendable { case add(amount: Int), take(amount: Int) }
///
///     func check(_ action: Action, _ context: ActionContext) throws {
///         if case .take(let amount) = action, amount > left { throw OutOfStock(left: left) }
///     }
///     mutating func apply(_ action: Action, _ context: ActionContext) {
///         switch action {
///         case .add(let amount): left += amount
///         case .take(let amount): left -= amount
///         }
///     }
/// }
/// ```
///
/// `check`, `apply` and computed properties run under the store's lock. They must use only the
/// model, the action and the context: no clock, no system randomness, no store. Touching a store
/// in them ends the program with a message.
public protocol Model: Codable, Sendable {
    /// What can happen to the model. A node may decode actions on several threads at a time, so their
    /// `init(from:)` must depend only on the decoder.
    associatedtype Action: Codable & Sendable

    /// The state's name: 1 to 64 characters of `a-z 0-9 . _ -`, the same in every process.
    static var name: String { get }
    /// The version of the actions' and the model's form, and of the rules; 1 unless stated. Raise it
    /// when the form changes in a way that older programs can't read, or when actions are judged
    /// differently, and make sure that ``migrate(_:from:)`` can read what older programs wrote.
    static var schemaVersion: Int { get }
    /// The oldest version as which this program can host a store; ``schemaVersion`` unless stated. See
    /// ``BridgedState/oldestSchemaVersion``.
    static var oldestSchemaVersion: Int { get }
    /// The version that an action needs; ``oldestSchemaVersion`` unless stated. See
    /// ``BridgedState/schemaVersion(of:)``.
    ///
    /// - Parameter action: An action.
    /// - Returns: The oldest version of the program that can decode it.
    static func schemaVersion(of action: Action) -> Int
    /// How the actions are encoded when dispatched here; `PayloadCoding.json` unless stated.
    static var coding: PayloadCoding { get }

    /// Makes the model as it is before the first action.
    init()

    /// Judges an action before anything has changed. Lets everything pass unless implemented.
    ///
    /// - Parameters:
    ///   - action: What is to happen.
    ///   - context: The action's place, time, origin and random numbers; ``apply(_:_:)`` gets the
    ///     same.
    /// - Throws: Why the action is refused; it becomes ``DispatchError/reason``.
    func check(_ action: Action, _ context: ActionContext) throws

    /// Changes the model by an action that passed the check. Can't fail.
    ///
    /// - Parameters:
    ///   - action: What happens.
    ///   - context: The action's place, time, origin and random numbers.
    mutating func apply(_ action: Action, _ context: ActionContext)

    /// Makes a model from one that an older version of the program wrote.
    ///
    /// Called wherever such a model is loaded, in every process alike; so it must depend on nothing
    /// but its arguments. Unless implemented, the old model is decoded as a present one. That is
    /// enough if properties were removed, or added as optional ones. If others were added, fill in
    /// their first values:
    ///
    /// ```swift
    /// static func migrate(_ old: SnapshotReader, from version: Int) throws -> Stock {
    ///     try old.decode(filling: Stock())
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - old: The model as it was written.
    ///   - version: The ``schemaVersion`` of the program that wrote it: less than the present one.
    /// - Returns: The same model in the present form.
    /// - Throws: Why there is none. The store then can't be opened here, and says so; nothing else
    ///   is changed.
    static func migrate(_ old: SnapshotReader, from version: Int) throws -> Self

    /// Makes what a program of an older version would have encoded: the counterpart of ``migrate(_:from:)``. See
    /// ``ReplicatedState/revert(_:to:)``. Unless implemented, the model is encoded as it is.
    ///
    /// - Parameters:
    ///   - model: The model in the present form.
    ///   - version: The version in force: less than the present one.
    /// - Returns: The same model in the form of that version.
    /// - Throws: Why there is none. Then no snapshot of the store is taken here.
    static func revert(_ model: Self, to version: Int) throws -> any Encodable & Sendable

    /// Called by a node before it replicates the model. There is no reason to implement it.
    static func _willReplicate()

    /// Checks and applies. There is no reason to implement it.
    mutating func _commit(_ action: Action, _ context: ActionContext) throws
}

extension Model {
    /// The first version.
    public static var schemaVersion: Int { 1 }
    /// The present version.
    public static var oldestSchemaVersion: Int { schemaVersion }
    /// The oldest version.
    public static func schemaVersion(of action: Action) -> Int { oldestSchemaVersion }
    /// JSON: readable in the log.
    public static var coding: PayloadCoding { .json }

    /// Does nothing.
    public static func _willReplicate() {}

    /// Checks and applies.
    public mutating func _commit(_ action: Action, _ context: ActionContext) throws {
        try check(action, context)
        apply(action, context)
    }

    /// Refuses nothing.
    public func check(_ action: Action, _ context: ActionContext) throws {}

    /// Decodes the old model as a present one.
    public static func migrate(_ old: SnapshotReader, from version: Int) throws -> Self {
        try old.decode()
    }

    /// The model as it is.
    public static func revert(
        _ model: Self, to version: Int
    ) throws -> any Encodable & Sendable { model }
}
