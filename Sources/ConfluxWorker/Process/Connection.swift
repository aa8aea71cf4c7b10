import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary

/// A connection to a sequencer, for one command.
package struct Connection: Sendable {
    package let core: NodeCore
    /// How long to wait for each answer.
    package let timeout: Duration

    /// Connects.
    ///
    /// - Parameters:
    ///   - environment: Has the address, and how long to wait.
    ///   - address: The address of the command's own sequencer, which has no keys; nil to use the
    ///     address of `environment`.
    ///   - role: The role, which decides whether there is a session.
    ///   - settings: The node's settings.
    ///   - key: The session key, if the session must outlive the process.
    ///   - tap: Called with every delivered commit.
    /// - Returns: The connection, after the sequencer's welcome.
    /// - Throws: ``CommandFailure`` if the connection fails, or the wait was ended.
    package static func open(
        _ environment: CommandEnvironment, at address: String? = nil, as role: Hello.Role,
        settings: NodeSettings = NodeSettings(), key: SessionKey? = nil,
        tap: (@Sendable (Commit) -> Void)? = nil
    ) async throws(CommandFailure) -> Connection {
        let isOwn = address != nil
        let address = address ?? environment.arguments[WorkerOptions.connect]
        let timeout = environment.arguments[WorkerOptions.timeout]
        var settings = settings
        settings.keys = isOwn ? nil : try WorkerOptions.keys(environment.arguments)
        settings.feeds = isOwn ? [] : WorkerOptions.feeds(environment.arguments)
        let core = try failing { [settings] () throws(NodeError) in
            try NodeCore(
                address: address, settings: settings, role: role, scope: .current, key: key,
                tap: tap)
        }
        return try await environment.interruption.cancelling { () async throws(CommandFailure) in
            try await failing { () async throws(NodeError) in
                try await core.connected(within: timeout, isPatient: false)
            }
            return Connection(core: core, timeout: timeout)
        }
    }

    /// Connects, does a command's work, and leaves, however the work ends. An interruption cancels the work.
    ///
    /// - Parameters:
    ///   - environment: Has the address, and how long to wait.
    ///   - address: The address of the command's own sequencer; nil to use the address of `environment`.
    ///   - role: The role.
    ///   - settings: The node's settings.
    ///   - tap: Called with every delivered commit.
    ///   - watch: Called with every event of the node, until that has left. A command that follows notes those about
    ///     the way to the sequencer. nil to watch nothing.
    ///   - work: The work.
    /// - Returns: What the work returns.
    /// - Throws: ``CommandFailure`` if the connection or the work fails.
    package static func use<Value: Sendable>(
        _ environment: CommandEnvironment, at address: String? = nil,
        as role: Hello.Role = .observer, settings: NodeSettings = NodeSettings(),
        tap: (@Sendable (Commit) -> Void)? = nil, watch: (@Sendable (NodeEvent) -> Void)? = nil,
        _ work: @escaping @Sendable (Connection) async throws(CommandFailure) -> Value
    ) async throws(CommandFailure) -> Value {
        let connection = try await open(
            environment, at: address, as: role, settings: settings, tap: tap)
        let watching = watch.map { watch in
            Task { [events = connection.core.eventStream] in
                for await event in events {
                    environment.noteLink(event, to: connection.core.address)
                    watch(event)
                }
            }
        }
        let result = await Result { () async throws(CommandFailure) in
            try await environment.interruption.cancelling { () async throws(CommandFailure) in
                try await work(connection)
            }
        }
        // This ends the stream of events, so that none is missed.
        await connection.close()
        await watching?.value
        return try result.get()
    }

    /// Has every commit from a number on delivered, and waits until the feed is heard.
    ///
    /// - Parameter sequence: The number.
    /// - Throws: ``CommandFailure`` that names the address, and why nothing comes from there.
    package func follow(from sequence: SequenceNumber) async throws(CommandFailure) {
        core.follow(from: sequence)
        try await failing { () async throws(NodeError) in try await core.hears(within: timeout) }
    }

    /// Asks a question that has one answer.
    package func ask(_ question: Question.Body) async throws(CommandFailure) -> Answer.Body {
        try await failing { () async throws(NodeError) in
            try await core.ask(question, patience: timeout).body
        }
    }

    /// The failure for an answer that does not fit the question.
    package static let unfit = CommandFailure(
        .failed,
        """
        The sequencer's answer does not match the question. Run the same version of conflux on \
        both sides.
        """)

    /// The sequencer's view of itself.
    ///
    /// - Parameter question: The question: for the status alone, or also for a state's shapes.
    /// - Returns: The status.
    /// - Throws: ``CommandFailure`` if there is no answer.
    package func status(
        _ question: Question.Body = .status
    ) async throws(CommandFailure) -> SequencerStatus {
        guard case .status(let status) = try await ask(question) else { throw Self.unfit }
        return status
    }

    /// The serving sequencer and its standbys; none if the log allows no standbys.
    package func sequencers() async throws(CommandFailure) -> [SequencerPlace] {
        guard case .sequencers(let places) = try await ask(.sequencers) else {
            throw Self.unfit
        }
        return places.filter { !$0.address.isEmpty }
    }

    /// The next timers that the sequencer keeps, ascending.
    ///
    /// - Parameter number: Only timers behind this number.
    /// - Returns: Some of them; none if there are no more.
    /// - Throws: ``CommandFailure`` if there is no answer.
    package func timers(
        behind number: SequenceNumber
    ) async throws(CommandFailure) -> [TimerStatus] {
        guard case .timers(let timers) = try await ask(.timers(behind: number)) else {
            throw Self.unfit
        }
        return timers
    }

    /// Asks the sequencer to hand over to a standby.
    ///
    /// - Parameter address: The standby's address; nil for the one that is furthest in the log.
    /// - Returns: The address of the standby that takes over.
    /// - Throws: ``CommandFailure`` if there is no such standby, or no answer.
    package func handOver(to address: String?) async throws(CommandFailure) -> String {
        guard case .handingOver(let successor) = try await ask(.handOver(to: address)) else {
            throw Self.unfit
        }
        return successor
    }

    /// Waits until the node has found the next term by itself.
    ///
    /// - Parameter events: The node's events, beginning before the current term ends.
    /// - Returns: The next term's epoch.
    /// - Throws: ``CommandFailure`` if there was none in time.
    package func nextTerm(_ events: AsyncStream<NodeEvent>) async throws(CommandFailure) -> Epoch {
        let reader = Task { () -> Epoch? in
            for await event in events {
                if case .reconnected(let epoch) = event { return epoch }
            }
            return nil
        }
        let timer = Task {
            await Pause.wait(for: timeout)
            reader.cancel()
        }
        let epoch = await reader.value
        timer.cancel()
        guard let epoch else {
            throw CommandFailure(
                .timedOut,
                "No sequencer at \(core.address) served within \(timeout). conflux status shows which one serves now."
            )
        }
        return epoch
    }

    /// Asks the sequencer to read its file of authorised keys again.
    ///
    /// - Returns: How many keys the file has.
    package func reload() async throws(CommandFailure) -> UInt32 {
        guard case .reloaded(let count) = try await ask(.reload) else { throw Self.unfit }
        return count
    }

    /// Makes the node leave, and waits until it has ended.
    package func close() async {
        core.leave(timeout: timeout)
        await core.ended()
    }
}
