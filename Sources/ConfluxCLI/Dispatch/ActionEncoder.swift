import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// Makes payloads of what people write.
struct ActionEncoder: Sendable {
    /// The row of the batches: what is dispatched to, and how.
    private(set) var target: BatchTarget
    private let payloadBytesMax: Int
    private let builtin: BuiltinStates.Codec?

    /// The most bytes of a line: blanks and escapes may make it longer than its payload.
    var lineBytesMax: Int { payloadBytesMax * 2 + 4_096 }

    init(_ target: Target, payloadBytesMax: Int) {
        self.target = BatchTarget(target: target, schemaVersion: 1, coding: .json)
        self.payloadBytesMax = payloadBytesMax
        builtin = target.state.flatMap {
            BuiltinStates.actions(of: $0, sizeBytesMax: payloadBytesMax)
        }
    }

    /// Marks what is dispatched as of the version that its target has, by which older replicas know that
    /// they may not understand it. The tool's own states have one version.
    ///
    /// - Parameters:
    ///   - version: The version; nil for the one of the store, or of the newest store of the state.
    ///   - stores: What stores there are.
    /// - Throws: What `stores` does.
    mutating func setSchemaVersion(
        _ version: UInt32?, stores: () async throws(CommandFailure) -> [StoreStatus]
    ) async throws(CommandFailure) {
        if let version {
            target.schemaVersion = version
        } else if builtin == nil {
            let concerned = try await stores().filter { target.target.concerns($0.store) }
            target.schemaVersion = concerned.map(\.schemaVersion).max() ?? 1
        }
    }

    /// Checks an action and encodes it: the tool's own states' by their types, others' as JSON.
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
            _ = try JSONValue(json: json, sizeBytesMax: lineBytesMax)
            return json
        } catch {
            let message = "The action is not valid: \(error)"
            throw CommandFailure(.invalidInput, code: "invalidAction", message)
        }
    }
}
