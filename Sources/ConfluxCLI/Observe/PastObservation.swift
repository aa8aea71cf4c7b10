import ConfluxNode
import ConfluxVocabulary
import ConfluxWorker

/// Shows a store as it was.
struct PastObservation {
    private let environment: CommandEnvironment
    private let store: StoreName
    private let path: JSONPointer

    init(_ environment: CommandEnvironment, _ store: StoreName, path: JSONPointer) {
        self.environment = environment
        self.store = store
        self.path = path
    }

    /// Makes and shows the state at a number, or what differs from that at an earlier one.
    ///
    /// - Throws: ``CommandFailure``.
    func show(
        at number: SequenceNumber, without: SequenceNumber?,
        comparedWith former: SequenceNumber?
    ) async throws(CommandFailure) {
        let state = BuiltinStates.replayed(store.state)
        guard state != nil || (without == nil && former == nil) else {
            throw CommandFailure(
                .notFound, code: "unknownState",
                """
                This program has no code of the state \(store.state), so it can't make its past. It knows \
                \(BuiltinStates.names). Give --at alone to see the snapshot before it, ask a gateway that serves the \
                store, or use Store.state(at:) in a program that has the state.
                """)
        }
        let arguments = environment.arguments
        var settings = NodeSettings()
        settings.keys = try WorkerOptions.keys(arguments)
        settings.feeds = WorkerOptions.feeds(arguments)
        settings.connectTimeout = arguments[WorkerOptions.timeout]
        let reader = PastReader(of: arguments[WorkerOptions.connect], settings)
        guard let state else {
            try await show(reader, at: number)
            return environment.output.flush()
        }
        let marks = former.map { [$0, number] } ?? [number]
        let states = try await environment.interruption.cancelling {
            () async throws(CommandFailure) in
            try await failing { () async throws(PastError) in
                try await reader.states(of: state, store, at: marks, without: without)
            }
        }
        try show(states)
        environment.output.flush()
    }

    /// Shows the newest state that the log keeps up to a number.
    private func show(
        _ reader: PastReader, at number: SequenceNumber
    ) async throws(CommandFailure) {
        let kept = try await environment.interruption.cancelling {
            () async throws(CommandFailure) in
            try await failing { () async throws(PastError) in
                try await reader.kept(of: store, at: number)
            }
        }
        let what =
            switch kept.kind {
            case .snapshot: "its snapshot at \(kept.sequence)"
            case .creation:
                "the state with which it was created at \(kept.sequence), since it has no snapshot yet"
            }
        environment.diagnostics.note(
            "This program does not have the code of \(store.state). This is \(what); later entries are not applied."
        )
        show(
            try part(of: kept.json, at: kept.sequence), at: number, kept.sequence,
            kept: kept.kind)
    }

    private func show(_ states: [PastState]) throws(CommandFailure) {
        if states.count == 1 {
            let past = states[0]
            show(try part(of: past.json, at: past.at), at: past.at, past.sequence)
            return
        }
        do throws(CodingFailure) {
            try show(states[0], states[1])
        } catch {
            throw Self.unreadable(error)
        }
    }

    private static func unreadable(_ error: CodingFailure) -> CommandFailure {
        CommandFailure(.failed, "The state can't be read as JSON: \(error)")
    }

    /// The state, or its part at the path.
    private func part(
        of json: [UInt8], at number: SequenceNumber
    ) throws(CommandFailure) -> [UInt8] {
        guard !path.tokens.isEmpty else { return json }
        let part: [UInt8]?
        do throws(CodingFailure) {
            part = try JSONValue(json: json)[path]?.canonicalBytes()
        } catch {
            throw Self.unreadable(error)
        }
        guard let part else {
            throw CommandFailure(
                .notFound, code: "nothingThere",
                """
                Nothing is at "\(path)" in \(store) at entry \(number). See the whole state without --path.
                """)
        }
        return part
    }

    private func add(_ line: [UInt8]) {
        if environment.isJSON {
            environment.output.add(json: line)
        } else {
            environment.output.add(line)
        }
    }

    private func show(
        _ state: [UInt8], at number: SequenceNumber, _ sequence: SequenceNumber,
        kept: KeptState.Kind? = nil
    ) {
        guard environment.isJSON else {
            let title = "\(store) at \(kept == nil ? number : sequence): "
            let look = environment.output.appearance
            guard look.isTerminal else { return add(Array(title.utf8) + state) }
            let lines = JSONLayout.bytes(state, look, from: title.count, columns: look.columns)
            return add(Array(look.paint(title, .bold).utf8) + lines)
        }
        let kept = kept.map { #""kept":"\#($0)","# } ?? ""
        let head = #"{"at":\#(number),\#(kept)"sequence":\#(sequence),"state":"#
        add(Array(head.utf8) + state + Array(#","store":"\#(store)"}"#.utf8))
    }

    private func show(_ former: PastState, _ later: PastState) throws(CodingFailure) {
        let (old, new) = (try JSONValue(json: former.json), try JSONValue(json: later.json))
        guard environment.isJSON else {
            for change in old.changes(to: new) { add(Array("\(change)".utf8)) }
            return
        }
        let changes = try JSONPatch.bytes(from: old, to: new)
        let tail = #","from":\#(former.at),"store":"\#(store)","to":\#(later.at)}"#
        add(Array(#"{"changes":"#.utf8) + changes + Array(tail.utf8))
    }
}
