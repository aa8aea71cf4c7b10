import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker

/// Encodes the actions that people write.
struct ActionEncoder: Sendable {
    /// The target, with the schema version and the coding, for the batches.
    private(set) var target: BatchTarget
    private let payloadBytesMax: Int
    private let builtin: BuiltinStates.Codec?
    /// The shapes of the state's actions: those of another state once ``prepare(schemaVersion:isChecking:status:)`` has
    /// found them.
    private var catalog: ActionCatalog?

    /// The most bytes of a line. Blanks and escapes may make it longer than its payload.
    var lineBytesMax: Int { payloadBytesMax * 2 + 4_096 }

    init(_ target: Target, ifUnchangedSince version: StoreVersion? = nil, payloadBytesMax: Int) {
        self.target = BatchTarget(
            target: target, schemaVersion: 1, coding: .json, unchangedSince: version)
        self.payloadBytesMax = payloadBytesMax
        builtin = target.state.flatMap {
            BuiltinStates.actions(of: $0, sizeBytesMax: payloadBytesMax)
        }
        catalog = builtin?.catalog
    }

    /// Finds out the schema version of the actions, and their shapes.
    ///
    /// The version tells older replicas that they may not understand an action. For its own states, the tool needs no
    /// answer: they have one version, and it knows their shapes.
    ///
    /// - Parameters:
    ///   - version: The version; nil for that of the store, or of the state's newest store.
    ///   - isChecking: Whether to check actions against the shapes that the state's programs report. If no program
    ///     reports them, only the JSON is checked.
    ///   - status: Asks for the sequencer's status, with a state's shapes.
    /// - Throws: What `status` throws.
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
            target.schemaVersion = concerned.map(\.schemaVersion).min() ?? 1
        }
        guard isChecking else { return }
        let told = status.shapes.first { $0.schemaVersion == target.schemaVersion }
        // Shapes that this version can't read, from a newer program, are no reason to refuse an
        // action.
        catalog = told.flatMap { try? ActionCatalog(json: $0.json) }
    }

    /// Checks an action and encodes it. Actions of the tool's own states are checked by their types, others by their
    /// shapes.
    ///
    /// - Parameter text: JSON, or the bare name of an action without fields.
    /// - Returns: The payload.
    /// - Throws: ``CommandFailure``, with what was expected and where.
    func payload(_ text: [UInt8]) throws(CommandFailure) -> [UInt8] {
        let payload = try encoded(text)
        // The node would detect this, too. But in a resumable run it must take every action that it
        // is given (rule 11).
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

    private static func words(_ text: [UInt8]) throws(CodingFailure) -> String {
        do throws(InvalidUTF8) {
            return try String(utf8: text)
        } catch {
            throw CodingFailure(
                .invalidText, "expected UTF-8, found byte \(error.hexadecimal)",
                offset: error.offset)
        }
    }

    private func check(_ json: [UInt8]) throws(CodingFailure) {
        let value = try JSONValue(json: json, sizeBytesMax: lineBytesMax)
        try catalog?.check(value, nearest: nearest(to:in:))
    }

    private func encoded(_ text: [UInt8]) throws(CommandFailure) -> [UInt8] {
        do throws(CodingFailure) {
            let words = try Self.words(text)
            guard let builtin else {
                let json = ActionText.json(commandLine: words)
                try check(json)
                return json
            }
            do throws(CodingFailure) {
                return try builtin.payload(words)
            } catch {
                // The shapes know which word was meant.
                if [.unknownAction, .unknownField, .missingField].contains(error.code) {
                    try check(ActionText.json(commandLine: words))
                }
                throw error
            }
        } catch {
            var message = "The action is not valid: \(error)"
            if text.first == UInt8(ascii: "{"), text.count > 2, !text.contains(UInt8(ascii: "\"")) {
                message +=
                    ". A shell takes quotation marks away: put the action into single quotes."
            }
            if let catalog {
                message += "\nThe actions are:\n  " + catalog.lines.joined(separator: "\n  ")
            }
            throw CommandFailure(.invalidInput, code: "invalidAction", message)
        }
    }
}
