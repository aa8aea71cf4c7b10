import ConfluxArguments
import ConfluxNode
import ConfluxProtocol
import ConfluxWorker

/// A connection to a sequencer, for one command.
struct Connection: Sendable {
    let core: NodeCore
    /// How long to wait for each answer.
    let timeout: Duration

    /// The parameters that ``open(_:as:settings:tap:)`` reads.
    static let parameters: [any ParameterKey] = [
        WorkerOptions.connect, WorkerOptions.secret, WorkerOptions.serverKey, WorkerOptions.timeout,
        ContextCommand.option, WorkerOptions.json,
    ]

    /// Connects.
    ///
    /// - Parameters:
    ///   - environment: Says where, and how long to wait.
    ///   - address: Where, if not there: at a sequencer of the command's own, which has no keys.
    ///   - role: Whether a session is needed.
    ///   - settings: How the node behaves.
    ///   - key: What the session is found by, if it is to outlive the process.
    ///   - tap: Given every commit that is delivered.
    /// - Returns: The connection, with a welcome.
    /// - Throws: Why there is none, or that the wait was ended.
    static func open(
        _ environment: CommandEnvironment, at address: String? = nil, as role: Hello.Role,
        settings: NodeSettings = NodeSettings(), key: SessionKey? = nil,
        tap: (@Sendable (Commit) -> Void)? = nil
    ) async throws(CommandFailure) -> Connection {
        let isOwn = address != nil
        let address = address ?? environment.arguments[WorkerOptions.connect]
        let timeout = environment.arguments[WorkerOptions.timeout]
        var settings = settings
        settings.keys = isOwn ? nil : try WorkerOptions.keys(environment.arguments)
        let core: NodeCore
        do throws(NodeError) {
            core = try NodeCore(
                address: address, settings: settings, role: role, scope: .current, key: key,
                tap: tap)
        } catch {
            throw CommandFailure(error)
        }
        return try await environment.interruption.cancelling { () async throws(CommandFailure) in
            do throws(NodeError) {
                try await core.connected(within: timeout, isPatient: false)
                return Connection(core: core, timeout: timeout)
            } catch {
                throw CommandFailure(error)
            }
        }
    }

    /// Asks a question that has one answer.
    func ask(_ question: Question.Body) async throws(CommandFailure) -> Answer.Body {
        do throws(NodeError) {
            return try await core.ask(question, patience: timeout).body
        } catch {
            throw CommandFailure(error)
        }
    }

    /// An answer to another question.
    private static let unfit = CommandFailure(
        .failed,
        """
        The sequencer's answer does not fit the question. Run the same version of conflux on both sides.
        """)

    /// The sequencer's view of itself.
    ///
    /// - Parameter question: Whether shapes are asked for besides.
    /// - Returns: The status.
    /// - Throws: Why there is none.
    func status(
        _ question: Question.Body = .status
    ) async throws(CommandFailure) -> SequencerStatus {
        guard case .status(let status) = try await ask(question) else {
            throw Self.unfit
        }
        return status
    }

    /// The sequencer that serves, and those that stand by; nobody where no other one can.
    func sequencers() async throws(CommandFailure) -> [SequencerPlace] {
        guard case .sequencers(let places) = try await ask(.sequencers) else {
            throw Self.unfit
        }
        return places.filter { !$0.address.isEmpty }
    }

    /// Has the sequencer give its place to one that stands by.
    ///
    /// - Parameter address: To which one; nil for the one that is furthest.
    /// - Returns: Which one.
    /// - Throws: Where none stands by, or it was not answered.
    func handOver(to address: String?) async throws(CommandFailure) -> String {
        guard case .handingOver(let successor) = try await ask(.handOver(to: address)) else {
            throw Self.unfit
        }
        return successor
    }

    /// Waits until the connection has found the next tenure, as every node does.
    ///
    /// - Parameter events: What happens to the node, from before the present tenure's end.
    /// - Returns: Its epoch.
    /// - Throws: Where there was none in time.
    func nextTenure(_ events: AsyncStream<NodeEvent>) async throws(CommandFailure) -> Epoch {
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
                "No sequencer served within \(timeout). conflux status shows which one does by now."
            )
        }
        return epoch
    }

    /// Has the sequencer read its file of authorised keys again.
    ///
    /// - Returns: How many keys it has.
    func reload() async throws(CommandFailure) -> UInt32 {
        guard case .reloaded(let count) = try await ask(.reload) else {
            throw Self.unfit
        }
        return count
    }

    /// Leaves, and waits until the node has ended.
    func close() async {
        core.leave(timeout: timeout)
        await core.ended()
    }
}
