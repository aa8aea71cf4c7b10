import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker

/// Asks the nodes that host a store for its state, once or repeatedly.
final class StoreObservation: Sendable {
    /// The state of a store in one node.
    private struct Sighting: Sendable {
        var node: Name?
        var sequence: SequenceNumber
        var state: Bytes
    }

    /// How long one question waits for a change.
    private static let followPatience = Duration.seconds(10)
    /// How long to wait before it looks for a host again.
    private static let hostPause = Duration.milliseconds(200)
    /// How long to wait before a node that failed to answer is asked again.
    private static let retryPause = Duration.seconds(1)

    private let environment: CommandEnvironment
    private let connection: Connection
    private let store: StoreName
    private let path: JSONPointer
    private let questions: OpenQuestions

    init(
        _ environment: CommandEnvironment, _ connection: Connection, _ store: StoreName,
        path: JSONPointer, _ questions: OpenQuestions
    ) {
        self.environment = environment
        self.connection = connection
        self.store = store
        self.path = path
        self.questions = questions
    }

    // MARK: Hosts

    /// Waits until a node hosts the store, if there is such a store: after a restart of the sequencer, for example,
    /// its nodes may not be back yet.
    ///
    /// - Parameter node: The node that must host it; nil for any.
    /// - Throws: ``CommandFailure``, with the code of a missing store or node, if there is no such store, if only other
    ///   nodes host it, or if the time runs out.
    private func awaitHost(_ node: Name?) async throws(CommandFailure) {
        let deadline = ContinuousClock.now + connection.timeout
        var isNoted = false
        while true {
            let status = try await connection.status()
            guard !isHosted(by: node, in: status) else { return }
            guard status.stores.contains(where: { $0.store == store }) else {
                throw CommandFailure(
                    unanswered: .notHosted,
                    "there is no store \(store): it was never opened, or it was dropped. conflux status shows "
                        + "the stores")
            }
            let absence = absence(of: node, in: status)
            let left = deadline - ContinuousClock.now
            // A node that is missing beside others is most likely misspelt.
            guard left > .zero, hosts(in: status).isEmpty else {
                throw CommandFailure(
                    unanswered: node == nil ? .notHosted : .unknownNode, absence)
            }
            if !isNoted {
                isNoted = true
                environment.diagnostics.note(
                    "\(absence); waiting for one for \(connection.timeout) (--timeout)")
            }
            await Pause.wait(for: min(Self.hostPause, left))
            try checkCancellation()
        }
    }

    private func absence(of node: Name?, in status: SequencerStatus) -> String {
        guard let node else { return "no live node hosts \(store)" }
        let names = hosts(in: status).compactMap { $0?.text }.sorted().joined(separator: ", ")
        return "no live node named \(node) hosts \(store); "
            + (names.isEmpty ? "nobody hosts it" : "it is hosted by: \(names)")
    }

    private func isHosted(by node: Name?, in status: SequencerStatus) -> Bool {
        hosts(in: status).contains { node == nil || $0 == node }
    }

    /// The names of the live nodes that host the store; nil stands for those without a name.
    private func hosts(in status: SequencerStatus) -> Set<Name?> {
        Set(status.sessions.filter { $0.isLive && $0.hosted.contains(store) }.map(\.name))
    }

    private func checkCancellation() throws(CommandFailure) {
        guard Task.isCancelled else { return }
        throw CommandFailure(
            .interrupted, "Interrupted before the state was read. Run the command again.")
    }

    // MARK: Once

    /// Shows the current state in every node, or in one.
    func show(_ node: Name?) async throws(CommandFailure) {
        try await awaitHost(node)
        var failure: CommandFailure?
        var sightings: [Sighting] = []
        try await ask(node, after: .zero, patience: connection.timeout) { answer in
            switch answer {
            case .success(let sighting): sightings.append(sighting)
            case .failure(let other): failure = failure ?? other
            }
        }
        for sighting in sightings.sorted(by: { ($0.node?.text ?? "~") < ($1.node?.text ?? "~") }) {
            do throws(CommandFailure) {
                add(try line(sighting))
            } catch {
                failure = failure ?? error
            }
        }
        environment.output.flush()
        if let failure { throw failure }
    }

    // MARK: Again and again

    /// A task of following has ended.
    private enum Step {
        /// These nodes host the store, and are not followed yet.
        case found(Set<Name?>)
        case failed(CommandFailure)
        case cancelled
    }

    /// Shows the state in every node, or in one, and each later state, until cancelled.
    func follow(_ node: Name?) async throws(CommandFailure) {
        // No host at the beginning is most likely a mistake; later, it is a pause.
        try await awaitHost(node)
        let failure = await withTaskGroup(of: Step.self) { group -> CommandFailure? in
            var followed: Set<Name?> = []
            var failure: CommandFailure?
            group.addTask {
                if let node { .found([node]) } else { await self.search(besides: []) }
            }
            for await step in group {
                switch step {
                case .found(let hosts):
                    followed.formUnion(hosts)
                    for host in hosts { group.addTask { await self.followOne(host) } }
                    let present = followed
                    if node == nil { group.addTask { await self.search(besides: present) } }
                case .failed(let other):
                    failure = failure ?? other
                    group.cancelAll()
                case .cancelled: break
                }
            }
            return failure
        }
        if let failure { throw failure }
    }

    /// Waits until other nodes host the store.
    private func search(besides followed: Set<Name?>) async -> Step {
        while !Task.isCancelled {
            do throws(CommandFailure) {
                let new = hosts(in: try await connection.status()).subtracting(followed)
                guard new.isEmpty else { return .found(new) }
            } catch {
                // The sequencer may be away at the moment; the node tries to reach it.
                guard error.exitCode == .timedOut else { return .failed(error) }
                continue
            }
            await Pause.wait(for: Self.retryPause)
        }
        return .cancelled
    }

    /// Shows the state in one node, or in those without a name, until cancelled.
    private func followOne(_ node: Name?) async -> Step {
        var last = SequenceNumber.zero
        var known = questions.history
        var isFirst = true
        while !Task.isCancelled {
            var failure: CommandFailure?
            // Numbers of a lost history say nothing about this one.
            let history = questions.history
            if history != known { (known, last) = (history, .zero) }
            do throws(CommandFailure) {
                try await ask(node, after: last, patience: Self.followPatience, of: history) {
                    answer in
                    switch answer {
                    case .success(let sighting):
                        guard sighting.node == node, sighting.sequence > last else { return }
                        last = sighting.sequence
                        do throws(CommandFailure) {
                            add(try line(sighting))
                            environment.output.flush()
                        } catch {
                            environment.diagnostics.report(error)
                        }
                    case .failure(let other): failure = other
                    }
                }
            } catch {
                return .failed(error)
            }
            // A right that is missing at the beginning is most likely a mistake; later, it may come back.
            if isFirst, let failure, failure.exitCode == .notPermitted { return .failed(failure) }
            // A question that failed at once would fail at once again.
            if let failure, failure.exitCode != .timedOut {
                await Pause.wait(for: Self.retryPause)
            }
            isFirst = false
        }
        return .cancelled
    }

    // MARK: Questions

    /// Asks for the state, and passes each answer on.
    ///
    /// - Parameters:
    ///   - node: The node; nil for every one.
    ///   - sequence: The number that the state must be after.
    ///   - patience: How long to wait.
    ///   - history: The history that the number belongs to; nil if it belongs to none. If that is lost, the question
    ///     ends.
    ///   - take: Gets each answer.
    /// - Throws: ``CommandFailure`` if the node has ended, or the task was cancelled.
    private func ask(
        _ node: Name?, after sequence: SequenceNumber, patience: Duration,
        of history: OpenQuestions.History? = nil,
        _ take: (Result<Sighting, CommandFailure>) -> Void
    ) async throws(CommandFailure) {
        let (answers, end) = try failing { () throws(NodeError) in
            try connection.core.answers(
                to: .observe(store, node: node, after: sequence), patience: patience)
        }
        let number = questions.begin(of: history, end)
        defer { questions.remove(number) }
        for await answer in answers {
            switch answer.body {
            case .state(_, let sequence, let state):
                take(.success(Sighting(node: answer.node, sequence: sequence, state: state)))
            case .failed(let reason, let message):
                take(.failure(CommandFailure(unanswered: reason, message)))
            case .status, .applied, .refused, .stopped, .concernedNobody, .alive, .reloaded,
                .sequencers, .handingOver, .start, .timers,
                .lease, .leases:
                break
            }
            // A node without a name can't be asked alone. Its answer is enough: the others' are not
            // waited for.
            if node == nil, sequence > .zero, answer.node == nil { break }
        }
        try checkCancellation()
    }

    // MARK: Lines

    private func add(_ line: [UInt8]) {
        if environment.isJSON {
            environment.output.add(json: line)
        } else {
            environment.output.add(line)
        }
    }

    private func line(_ sighting: Sighting) throws(CommandFailure) -> [UInt8] {
        let state = try part(of: sighting)
        let node = sighting.node.map { "\"\($0)\"" } ?? "null"
        guard environment.isJSON else {
            let title = "\(sighting.node?.text ?? "(no name)") at \(sighting.sequence): "
            let look = environment.output.appearance
            guard look.isTerminal else { return Array(title.utf8) + state }
            let lines = JSONLayout.bytes(state, look, from: title.count, columns: look.columns)
            return Array(look.paint(title, .bold).utf8) + lines
        }
        let head = #"{"node":\#(node),"sequence":\#(sighting.sequence),"state":"#
        return Array(head.utf8) + state + Array(#","store":"\#(store)"}"#.utf8)
    }

    /// The state's canonical bytes as the node sent them, or those of the part at the path.
    private func part(of sighting: Sighting) throws(CommandFailure) -> Bytes {
        guard !path.tokens.isEmpty else { return sighting.state }
        let node = sighting.node?.text ?? "a node without a name"
        let bytes: [UInt8]?
        do throws(CodingFailure) {
            bytes = try JSONValue(json: sighting.state)[path]?.canonicalBytes()
        } catch {
            throw CommandFailure(
                .failed,
                "The state that \(node) sent can't be read. Update conflux to that node's version: \(error)"
            )
        }
        guard let bytes else {
            throw CommandFailure(
                .notFound, code: "nothingThere",
                """
                Nothing is at "\(path)" in \(store) on \(node), at entry \(sighting.sequence). See the \
                whole state with `conflux observe \(store)`.
                """)
        }
        return bytes[...]
    }
}
