@_exported import Conflux
import ConfluxProtocol
import ConfluxVocabulary
@_exported import struct ConfluxVocabulary.LatencyHistogram
@_exported import struct ConfluxVocabulary.Name
@_exported import struct ConfluxVocabulary.StoreName
@_exported import enum ConfluxVocabulary.Target
import ConfluxZeroMQ
import Synchronization

/// Connects this process to a sequencer, hosts replicas of stores, and sends actions to the log.
///
/// ```swift
/// let node = try await Node.connect(to: "tcp://127.0.0.1:7400")
/// let stock = try await node.store(Stock.self)
/// try await stock.dispatch(.take(amount: 5)).receipt()
/// print(stock.left)
/// ```
///
/// You may use a node on any thread. It lives until it is closed or released. Actions without an
/// outcome by then end in an error that says so.
public final class Node: Sendable {
    /// The settings that the node was made with.
    public let settings: NodeSettings
    let scope: Scope
    let core: NodeCore

    init(settings: NodeSettings, scope: Scope, core: NodeCore) {
        self.settings = settings
        self.scope = scope
        self.core = core
    }

    deinit {
        core.leave(timeout: .zero)
    }

    /// Connects to a sequencer.
    ///
    /// - Parameters:
    ///   - address: Where the sequencer listens: `tcp://host:port`. Give several, separated by commas, where other
    ///     sequencers stand by: the node finds the one that serves, and again when another takes over. A host whose
    ///     name has several addresses does as well.
    ///   - settings: How the node behaves.
    ///   - scope: Where its stores belong: the present scope unless given. Bridged states are
    ///     bridged in it.
    /// - Returns: The node, with a session.
    /// - Throws: ``NodeError`` when the address is invalid, when no sequencer answers within
    ///   ``NodeSettings/connectTimeout``, or when the sequencer refuses the node.
    public static func connect(
        to address: String, settings: NodeSettings = NodeSettings(), scope: Scope = .current
    ) async throws(NodeError) -> Node {
        let core = try NodeCore(address: address, settings: settings, role: .member, scope: scope)
        let node = Node(settings: settings, scope: scope, core: core)
        try await core.connected(within: settings.connectTimeout)
        return node
    }

    /// What happens to the node, from the call on. The stream ends with the node. Each reader has
    /// a buffer of its own of ``NodeSettings/eventsMax`` events, and loses the oldest above it.
    public var events: AsyncStream<NodeEvent> { core.events.stream() }

    /// The node's present status.
    public var status: NodeStatus {
        get async {
            let link = await core.linkStatus()
            return NodeStatus(
                name: settings.name, isConnected: link?.isJoined ?? false, log: link?.log,
                epoch: link?.epoch ?? .none, incarnation: link?.incarnation ?? .none,
                last: link?.last ?? .zero, applied: link?.applied ?? .zero,
                unsettled: link?.unsettled ?? 0, stores: core.stores.names)
        }
    }

    /// The node's counters and measurements. The node's threads publish most of them once a second, so they
    /// are up to two seconds old. Call it on any thread; it never waits for the node's threads.
    public func metrics() -> NodeMetrics {
        var metrics = core.meter.metrics(at: Moment.now.monotonic)
        metrics.stores = core.stores.names
        metrics.bounds += [
            core.outbox.bound,
            Bound("jobsMax", core.jobs.count, of: core.settings.jobsMax),
        ]
        return metrics
    }

    /// Asks the sequencer for its view of itself, of the nodes and of the stores.
    ///
    /// - Parameter patience: How long to wait.
    /// - Returns: The sequencer's view at one moment.
    /// - Throws: ``NodeError`` when no answer came in time.
    public func sequencerStatus(
        patience: Duration = .seconds(5)
    ) async throws(NodeError) -> SequencerStatus {
        let answer = try await core.ask(.status, patience: patience)
        guard case .status(let status) = answer.body else {
            throw NodeError(
                code: .unanswered,
                message: """
                    The sequencer's answer does not fit the question. Run the same version of Conflux on \
                    both sides.
                    """)
        }
        return status
    }

    /// Sends a function through the thread that owns the sockets, and then through the one that applies,
    /// which calls it. It is never called where one of them hangs, or the node has ended.
    ///
    /// - Parameter passed: Called at most once, on the thread that applies; it must not wait.
    package func probe(_ passed: @escaping @Sendable () -> Void) {
        core.port.post(.probe(passed))
    }

    /// Leaves: waits for the outcomes of dispatched actions, for ``NodeSettings/closeTimeout`` at
    /// most, then says goodbye and ends the node's threads.
    ///
    /// Actions without an outcome by then end in `DispatchError.Code.outcomeUnknown`; dispatches
    /// from now on fail with `DispatchError.Code.notConnected`. The node's stores keep their last
    /// state and change no more.
    public func close() async {
        core.leave(timeout: settings.closeTimeout)
        await core.ended()
    }
}
