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
    /// What is known of lost histories, and the questions that are open.
    private let questions = Mutex(Questions())

    /// What one node answered.
    private typealias Seen = Result<Sighting, CommandFailure>

    private struct Questions {
        /// How often the log's history was lost.
        var losses = 0
        /// By the node that is followed.
        var open: [Name?: Task<Result<[Seen], CommandFailure>, Never>] = [:]
    }

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
        _ = try await awaitHost()
        var failure: CommandFailure?
        var sightings: [Sighting] = []
        for answer in try await ask(node, after: .zero, patience: connection.timeout) {
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

    /// Waits until a node hosts the store, if there is such a store: after a restart of the sequencer, for example, its
    /// nodes may not be back yet.
    ///
    /// - Returns: Whether one does. If not, the question for the state gets the reason.
    private func awaitHost() async throws(CommandFailure) -> Bool {
        let deadline = ContinuousClock.now + connection.timeout
        var isNoted = false
        while true {
            let status = try await connection.status()
            guard hosts(in: status).isEmpty else { return true }
            guard status.stores.contains(where: { $0.store == store }),
                ContinuousClock.now < deadline, !Task.isCancelled
            else { return false }
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

    private func hosts(in status: SequencerStatus) -> Set<Name?> {
        Set(status.sessions.filter { $0.isLive && $0.hosted.contains(store) }.map(\.name))
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
                group.addTask { await self.followAlone(node) }
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

    /// Tells that the history was lost: what the nodes show from then on may have lower numbers. Open questions, which
    /// ask for higher ones, end.
    private func watch(_ events: AsyncStream<NodeEvent>) async {
        var outages = OutageNotes(environment, connection)
        for await event in events {
            outages.tell(event)
            guard case .historyLost(let from, let through) = event else { continue }
            environment.tellHistoryLost(
                ["from": .number(from), "through": .number(through)],
                "the log has lost the entries \(from) to \(through), as after a restore from a backup: "
                    + "the states that were shown may be void, and numbers begin again at \(from)")
            questions.withLock { questions in
                questions.losses += 1
                for question in questions.open.values { question.cancel() }
            }
        }
    }

    private func followAlone(_ node: Name) async -> Result<Void, CommandFailure> {
        do throws(CommandFailure) {
            _ = try await awaitHost()
        } catch {
            return .failure(error)
        }
        return await follow(node, isAlone: true)
    }

    /// Follows every node that hosts the store, including those that come later.
    private func discover() async -> Result<Void, CommandFailure> {
        await withDiscardingTaskGroup { group in
            do throws(CommandFailure) {
                // No host at the beginning is most likely a mistake; later, it is a pause.
                if try await !awaitHost() {
                    for answer in try await ask(nil, after: .zero, patience: connection.timeout) {
                        _ = try answer.get()
                    }
                }
                while !Task.isCancelled {
                    for host in try await presentHosts() where claim(host) {
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

    private func presentHosts() async throws(CommandFailure) -> Set<Name?> {
        while !Task.isCancelled {
            do throws(CommandFailure) {
                return hosts(in: try await connection.status())
            } catch  where error.exitCode == .timedOut {
                // The sequencer is away at the moment; the node tries to reach it.
                continue
            }
        }
        return []
    }

    private func follow(_ node: Name?, isAlone: Bool) async -> Result<Void, CommandFailure> {
        var last = SequenceNumber.zero
        var known = questions.withLock { $0.losses }
        var isFirst = true
        while !Task.isCancelled {
            let after = last
            let question = Task { () -> Result<[Seen], CommandFailure> in
                do throws(CommandFailure) {
                    return .success(
                        try await self.ask(node, after: after, patience: Self.followPatience))
                } catch {
                    return .failure(error)
                }
            }
            let isOutdated = questions.withLock { questions in
                questions.open[node] = question
                return questions.losses != known
            }
            if isOutdated { question.cancel() }
            let result = await withTaskCancellationHandler {
                await question.value
            } onCancel: {
                question.cancel()
            }
            // Numbers of a lost history say nothing about this one.
            let losses = questions.withLock { $0.losses }
            if losses != known {
                (known, last) = (losses, .zero)
                continue
            }
            var failure: CommandFailure?
            let answers: [Seen]
            do throws(CommandFailure) {
                answers = try result.get()
            } catch {
                return .failure(error)
            }
            for answer in answers {
                switch answer {
                case .success(let sighting):
                    guard sighting.node == node, sighting.sequence > last else { continue }
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
            // A node that is missing at the beginning is most likely misspelt; later, it will come back.
            if let failure, failure.exitCode == .notFound, isFirst, isAlone {
                return .failure(failure)
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

    /// Asks for the state, and gathers the answers.
    private func ask(
        _ node: Name?, after: SequenceNumber, patience: Duration
    ) async throws(CommandFailure) -> [Seen] {
        let answers: AsyncStream<Answer>
        do throws(NodeError) {
            answers = try connection.core.answers(
                to: .observe(store, node: node, after: after), patience: patience)
        } catch {
            throw CommandFailure(error)
        }
        var found: [Seen] = []
        for await answer in answers {
            switch answer.body {
            case .state(_, let sequence, let state):
                found.append(
                    .success(Sighting(node: answer.node, sequence: sequence, state: state)))
            case .failed(let reason, let message):
                found.append(.failure(CommandFailure(unanswered: reason, message)))
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
        return found
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
