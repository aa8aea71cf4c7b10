import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// Makes payloads of what people write.
struct ActionEncoder: Sendable {
    /// The row of the batches: what is dispatched to, and how.
    private(set) var target: BatchTarget
    private let payloadBytesMax: Int
    private let builtin: BuiltinStates.Codec?
    /// The shapes of another state's actions, once ``prepare(schemaVersion:isChecking:status:)`` has found them.
    private var catalog: ActionCatalog?

    /// The most bytes of a line: blanks and escapes may make it longer than its payload.
    var lineBytesMax: Int { payloadBytesMax * 2 + 4_096 }

    init(_ target: Target, payloadBytesMax: Int) {
        self.target = BatchTarget(target: target, schemaVersion: 1, coding: .json)
        self.payloadBytesMax = payloadBytesMax
        builtin = target.state.flatMap {
            BuiltinStates.actions(of: $0, sizeBytesMax: payloadBytesMax)
        }
    }

    /// Finds out the schema version of what is dispatched, and the shapes of its actions.
    ///
    /// By the version older replicas know that they may not understand it. The tool's own states have one
    /// version, and it knows their shapes.
    ///
    /// - Parameters:
    ///   - version: The version; nil for the one of the store, or of the newest store of the state.
    ///   - isChecking: Whether actions are checked by the shapes that the state's programs tell. If none tells
    ///     them, nothing is checked.
    ///   - status: The sequencer's status, with the shapes of a state.
    /// - Throws: What `status` does.
    mutating func prepare(
        schemaVersion version: UInt32?, isChecking: Bool,
        status: (Name) async throws(CommandFailure) -> SequencerStatus
    ) async throws(CommandFailure) {
        if let version { target.schemaVersion = version }
        guard builtin == nil, version == nil || isChecking, let state = target.target.state else {
            return
        }
        let status = try await status(state)
        if version == nil {
            let concerned = status.stores.filter { target.target.concerns($0.store) }
            target.schemaVersion = concerned.map(\.schemaVersion).max() ?? 1
        }
        guard isChecking else { return }
        let told = status.shapes.first { $0.schemaVersion == target.schemaVersion }
        // What a newer program may tell in another form is no reason to refuse an action.
        catalog = told.flatMap { try? ActionCatalog(json: $0.json) }
    }

    /// Checks an action and encodes it: the tool's own states' by their types, others' by their shapes.
    ///
    /// - Parameter text: JSON, or the bare name of an action without fields.
    /// - Returns: The payload.
    /// - Throws: What was expected, and where.
    func payload(_ text: [UInt8]) throws(CommandFailure) -> [UInt8] {
        let payload = try encoded(text)
        // The node would say so, too; but what it is given it must take (rule 11).
        guard payload.count <= payloadBytesMax else {
            throw CommandFailure(
                .invalidInput, code: "invalidAction",
                """
                The encoded action has \(payload.count) bytes and the limit is \(payloadBytesMax). \
                Make it smaller, or raise the limit with --payload-max, here and at the sequencer.
                """)
        }
        return payload
    }

    private func encoded(_ text: [UInt8]) throws(CommandFailure) -> [UInt8] {
        do throws(CodingFailure) {
            if let builtin { return try builtin.payload(text) }
            guard let words = String(validating: text, as: UTF8.self) else {
                throw CodingFailure(.invalidText, "the action is not UTF-8")
            }
            let json = ActionText.json(commandLine: words)
            let value = try JSONValue(json: json, sizeBytesMax: lineBytesMax)
            try catalog?.check(value, nearest: nearest(to:in:))
            return json
        } catch {
            var message = "The action is not valid: \(error)"
            if let catalog {
                message += "\nThe actions are:\n  " + catalog.lines.joined(separator: "\n  ")
            }
            throw CommandFailure(.invalidInput, code: "invalidAction", message)
        }
    }
}
