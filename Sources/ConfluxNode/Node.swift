@_exported import Conflux
import ConfluxProtocol
import ConfluxVocabulary
@_exported import struct ConfluxVocabulary.LatencyHistogram
@_exported import struct ConfluxVocabulary.Name
@_exported import struct ConfluxVocabulary.StoreName
@_exported import enum ConfluxVocabulary.Target
import ConfluxZeroMQ

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
    package let core: NodeCore

    init(settings: NodeSettings, scope: Scope, core: NodeCore) {
        self.settings = settings
        self.scope = scope
        self.core = core
    }

    deinit {
        EventRoute.end(in: scope, to: core.outbox)
        core.leave(timeout: .zero)
    }

    /// Connects to a sequencer.
    ///
    /// - Parameters:
    ///   - address: Where the sequencer listens: `tcp://host:port` or `ipc://path`. If other sequencers stand by,
    ///     give several addresses, separated by commas. The node finds the sequencer that serves,
    ///     and finds it again after a takeover. A host name with several addresses works as well.
    ///   - settings: How the node behaves.
    ///   - scope: The scope of its stores: the present scope unless given. Bridged states are
    ///     bridged in it.
    /// - Returns: The node, with a session.
    /// - Throws: ``NodeError`` when the address is invalid, when no sequencer answers within
    ///   ``NodeSettings/connectTimeout``, or when the sequencer refuses the node.
    public static func connect(
        to address: String, settings: NodeSettings = NodeSettings(), scope: Scope = .current
    ) async throws(NodeError) -> Node {
        try await connect(to: address, settings: settings, scope: scope, tap: nil)
    }

    /// Connects to a sequencer, and has every commit shown that is delivered.
    ///
    /// - Parameters:
    ///   - address: Where the sequencer listens.
    ///   - settings: How the node behaves.
    ///   - scope: The scope of its stores.
    ///   - tap: Gets the commits, on the thread that applies. It must not wait.
    /// - Returns: The node, with a session.
    /// - Throws: As ``connect(to:settings:scope:)``.
    package static func connect(
        to address: String, settings: NodeSettings, scope: Scope = .current,
        tap: (@Sendable (Commit) -> Void)?
    ) async throws(NodeError) -> Node {
        let core = try NodeCore(
            address: address, settings: settings, role: .member, scope: scope, tap: tap)
        let node = Node(settings: settings, scope: scope, core: core)
        try await core.connected(within: settings.connectTimeout)
        EventRoute.begin(in: scope, to: core.outbox)
        return node
    }

    /// The node's events from the call on. The stream ends with the node. Each reader has its own
    /// buffer of ``NodeSettings/eventsMax`` events. If the buffer is full, the reader loses the
    /// oldest event.
    public var events: AsyncStream<NodeEvent> { core.events.stream() }

    /// The node's present status.
    public var status: NodeStatus {
        get async {
            let link = await core.linkStatus()
            return NodeStatus(
                name: settings.name, isConnected: link?.isConnected ?? false, log: link?.log,
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
            throw .unfit
        }
        return status
    }

    /// Sends a function through the thread that owns the sockets, and then through the thread that
    /// applies, which calls it. It is never called if one of the threads hangs, or the node has
    /// ended.
    ///
    /// - Parameter passed: Called at most once, on the thread that applies. It must not wait.
    package func probe(_ passed: @escaping @Sendable () -> Void) {
        core.port.post(.probe(passed))
    }

    /// Leaves the sequencer: waits for the outcomes of dispatched actions, but at most for
    /// ``NodeSettings/closeTimeout``, then says goodbye and ends the node's threads.
    ///
    /// Actions without an outcome by then end in `DispatchError.Code.outcomeUnknown`. Later
    /// dispatches fail with `DispatchError.Code.notConnected`. The node's stores keep their last
    /// state and no longer change.
    ///
    /// - Parameter limit: How long to wait for outcomes instead.
    public func close(within limit: Duration? = nil) async {
        core.leave(timeout: limit ?? settings.closeTimeout)
        await core.ended()
    }
}
