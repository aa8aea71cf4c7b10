import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxWorker
import Synchronization

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
    /// The nodes that are followed; nil stands for those without a name.
    private let followed = Mutex<Set<Name?>>([])
    /// How often the log's history was lost.
    private let losses = Atomic(0)

    init(
        _ environment: CommandEnvironment, _ connection: Connection, _ store: StoreName,
        path: JSONPointer
    ) {
        self.environment = environment
        self.connection = connection
        self.store = store
        self.path = path
    }

    // MARK: Once

    /// Shows the current state in every node, or in one.
    func show(_ node: Name?) async throws(CommandFailure) {
        if node == nil { try await awaitHost() }
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

    /// Waits until a node hosts the store, if there is such a store: after a restart of the sequencer, for example,
    /// its nodes may not be back yet. If the time runs out, the question for the state gets its own answer.
    private func awaitHost() async throws(CommandFailure) {
        let deadline = ContinuousClock.now + connection.timeout
        var isNoted = false
        while ContinuousClock.now < deadline, !Task.isCancelled {
            let status = try await connection.status()
            let isHosted = status.sessions.contains { $0.isLive && $0.hosted.contains(store) }
            guard !isHosted, status.stores.contains(where: { $0.store == store }) else { return }
            if !isNoted {
                isNoted = true
                environment.diagnostics.note(
                    "no live node hosts \(store); waiting for one for \(connection.timeout) "
                        + "(--timeout)"
                )
            }
            await Pause.wait(for: Self.hostPause)
        }
    }

    // MARK: Again and again

    /// Shows the state in every node, or in one, and each later state, until cancelled.
    func follow(_ node: Name?) async throws(CommandFailure) {
        let events = connection.core.eventStream
        let watching = Task { await watch(events) }
        defer { watching.cancel() }
        let outcome = await withTaskGroup(of: Result<Void, CommandFailure>.self) { group in
            if let node {
                _ = claim(node)
                group.addTask { await self.follow(node, isAlone: true) }
            } else {
                group.addTask { await self.discover() }
            }
            var outcome = Result<Void, CommandFailure>.success(())
            for await result in group {
                outcome = result
                if case .failure = result { group.cancelAll() }
            }
            return outcome
        }
        try outcome.get()
    }

    /// Tells that the history was lost: what the nodes show from then on may have lower numbers.
    private func watch(_ events: AsyncStream<NodeEvent>) async {
        for await event in events {
            guard case .historyLost(let from, let through) = event else { continue }
            losses.add(1, ordering: .relaxed)
            environment.tellHistoryLost(
                ["from": .number(from), "through": .number(through)],
                "the log has lost the entries \(from) to \(through), as after a restore from a backup: "
                    + "the states that were shown may be void, and numbers begin again at \(from)")
        }
    }

    /// Follows every node that hosts the store, including those that come later.
    private func discover() async -> Result<Void, CommandFailure> {
        await withDiscardingTaskGroup { group in
            do throws(CommandFailure) {
                // No host at the beginning is most likely a mistake; later, it is a pause.
                try await awaitHost()
                guard !(try await hosts()).isEmpty else {
                    try await show(nil)
                    return .success(())
                }
                while !Task.isCancelled {
                    for host in try await hosts() where claim(host) {
                        group.addTask { _ = await self.follow(host, isAlone: false) }
                    }
                    await Pause.wait(for: Self.retryPause)
                }
                return .success(())
            } catch {
                group.cancelAll()
                return .failure(error)
            }
        }
    }

    private func claim(_ node: Name?) -> Bool {
        followed.withLock { $0.insert(node).inserted }
    }

    private func hosts() async throws(CommandFailure) -> Set<Name?> {
        while !Task.isCancelled {
            do throws(CommandFailure) {
                let sessions = try await connection.status().sessions
                return Set(sessions.filter { $0.isLive && $0.hosted.contains(store) }.map(\.name))
            } catch  where error.exitCode == .timedOut {
                // The sequencer is away at the moment; the node tries to reach it.
                continue
            }
        }
        return []
    }

    private func follow(_ node: Name?, isAlone: Bool) async -> Result<Void, CommandFailure> {
        var last = SequenceNumber.zero
        var known = losses.load(ordering: .relaxed)
        var isFirst = true
        while !Task.isCancelled {
            var failure: CommandFailure?
            // Numbers of a lost history say nothing about this one.
            let present = losses.load(ordering: .relaxed)
            if present != known { (known, last) = (present, .zero) }
            do throws(CommandFailure) {
                try await ask(node, after: last, patience: Self.followPatience) { answer in
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
                return .failure(error)
            }
            if let failure, failure.exitCode == .notFound {
                // A node that is missing at the beginning is most likely misspelt; later, it will
                // come back.
                if isFirst, isAlone { return .failure(failure) }
            }
            // A question that failed at once would fail at once again.
            if let failure, failure.exitCode != .timedOut {
                await Pause.wait(for: Self.retryPause)
            }
            isFirst = false
        }
        return .success(())
    }

    // MARK: Questions

    private func ask(
        _ node: Name?, after: SequenceNumber, patience: Duration,
        _ take: (Result<Sighting, CommandFailure>) -> Void
    ) async throws(CommandFailure) {
        let answers: AsyncStream<Answer>
        do throws(NodeError) {
            answers = try connection.core.answers(
                to: .observe(store, node: node, after: after), patience: patience)
        } catch {
            throw CommandFailure(error)
        }
        for await answer in answers {
            switch answer.body {
            case .state(_, let sequence, let state):
                take(.success(Sighting(node: answer.node, sequence: sequence, state: state)))
            case .failed(let reason, let message):
                take(.failure(CommandFailure(unanswered: reason, message)))
            case .status, .applied, .refused, .stopped, .concernedNobody, .alive, .reloaded,
                .sequencers, .handingOver:
                break
            }
            // A node without a name can't be asked alone. Its answer is enough: the others' are not
            // waited for.
            if node == nil, after > .zero, answer.node == nil { break }
        }
        if Task.isCancelled {
            throw CommandFailure(
                .interrupted, "Interrupted before the state was read. Run the command again.")
        }
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
