import CZeroMQ
import Conflux
import ConfluxArguments
import ConfluxMonitoring
import ConfluxNode
import ConfluxProtocol
import ConfluxSequencer
import ConfluxWorker
import ConfluxZeroMQ
import Foundation
import Synchronization

/// A worker that serves its stores to every ZeroMQ socket.
final class GatewayService: WorkerService {
    private let arguments: Invocation
    /// The stores that it is to serve.
    private let stores: [StoreName]
    /// The states whose code the program has.
    private let known: Set<String>
    private let epochs = EpochTable()
    private let streams = StreamHub()
    let ring = CommitRing()
    private let mailbox: Mailbox<GatewayThread.Message>
    private let waker: Waker
    private let state = Mutex(State())

    // Sendable: guarded by the mutex until the thread begins, which then has the sockets.
    private struct State: @unchecked Sendable {
        var keys: GatewayKeys?
        var settings = NodeSettings()
        var context: LibraryContext?
        var authenticator: Authenticator?
        /// In the order of the command line.
        var publishing: [Bound] = []
        var asking: Bound?
        var stores: [any AnyServedStore] = []
        var overview: (node: Node, overview: Overview)?
        var past: PastDesk?
        var isFollowing = false
        /// Whether all stores are open.
        var isServing = false
        var thread: NamedThread?
    }

    private typealias Bound = (socket: LibrarySocket, address: String)

    /// Every open request has an outcome, and some more messages are on their way at times.
    private static let mailboxMax = 1 << 20

    init(
        _ arguments: Invocation, _ stores: [StoreName], knowing states: [HostedState]
    ) throws(ZeroMQError) {
        self.arguments = arguments
        self.stores = stores
        known = Set(states.map(\.name))
        waker = try Waker()
        mailbox = Mailbox(capacity: Self.mailboxMax, waker: waker)
    }

    var tap: (@Sendable (Commit) -> Void)? {
        // Only over HTTP does anybody look at it.
        let ring = arguments[MonitoringOptions.http] == nil ? nil : ring
        return { [epochs] commit in
            epochs.note(commit)
            ring?.note(commit)
        }
    }

    var api: WorkerAPI? {
        WorkerAPI(connectionsMax: GatewayBounds.connectionsMax) { [self] token in
            APIService(
                token: token, hasKeys: arguments[GatewayOptions.authorized] != nil,
                payloadBytesMax: arguments[WorkerOptions.payloadMax], epochs: epochs,
                streams: streams,
                past: { [self] in state.withLock { $0.past } },
                stores: { [self] in state.withLock { $0.isServing ? $0.stores : nil } },
                ask: { [self] inquiry in
                    state.withLock { $0.isServing } && mailbox.post(.inquiry(inquiry)) == .accepted
                },
                feed: EntryFeed(ring) { [self] in state.withLock { $0.isServing ? $0.stores : nil }
                },
                overview: { [self] in state.withLock { $0.isServing ? $0.overview : nil } })
        }
    }

    // MARK: Before the node

    func prepare(
        _ settings: inout NodeSettings, in environment: CommandEnvironment
    ) throws(CommandFailure) {
        // The gateway's own key is for its clients, too. So it may be without a sequencer's.
        let isForClientsOnly =
            arguments[WorkerOptions.serverKey] == nil && arguments[GatewayOptions.authorized] != nil
        settings.keys = isForClientsOnly ? nil : try WorkerOptions.keys(arguments)
        // A gateway answers that there is no room, instead of waiting for it.
        settings.outboxPolicy = .fail
        let keys = try GatewayKeys(
            secret: arguments[WorkerOptions.secret],
            authorized: arguments[GatewayOptions.authorized])
        let context = LibraryContext()
        do throws(LibraryFailure) {
            let authenticator = try keys.map { _ throws(LibraryFailure) in
                try Authenticator(in: context)
            }
            var publishing: [Bound] = []
            for (index, publication) in arguments[GatewayOptions.publish].enumerated() {
                publishing.append(
                    try Self.bind(
                        for: .publish(index), to: "\(publication.endpoint)", in: context, keys,
                        settings))
            }
            let asking = try arguments[GatewayOptions.ask].map { address throws(LibraryFailure) in
                try Self.bind(for: .ask, to: "\(address)", in: context, keys, settings)
            }
            state.withLock { [settings, publishing] state in
                state.settings = settings
                state.keys = keys
                state.context = context
                state.authenticator = authenticator
                state.publishing = publishing
                state.asking = asking
            }
            if let path = arguments[GatewayOptions.authorized] { reload(path, environment) }
        } catch {
            throw error.failure
        }
    }

    private static func bind(
        for domain: Authenticator.Domain, to address: String, in context: LibraryContext,
        _ keys: GatewayKeys?, _ settings: NodeSettings
    ) throws(LibraryFailure) -> Bound {
        let socket: LibrarySocket
        switch domain {
        case .publish:
            socket = try LibrarySocket(ZMQ_XPUB, in: context)
            try socket.set(ZMQ_XPUB_VERBOSE, Int32(1))
            try socket.set(ZMQ_MAXMSGSIZE, GatewayBounds.subscriptionBytesMax)
        case .ask:
            socket = try LibrarySocket(ZMQ_ROUTER, in: context)
            try socket.set(
                ZMQ_MAXMSGSIZE, Int64(settings.payloadBytesMax + GatewayBounds.requestBytesMax))
        }
        try socket.set(ZMQ_SNDHWM, GatewayBounds.waitingMax)
        try socket.keepAlive()
        if let keys { try Authenticator.secure(socket, for: domain, with: keys) }
        return (socket, try socket.bind(address))
    }

    /// Makes the publishers of the sockets that were bound, in their order.
    private func publishers(_ state: State) -> [Publisher] {
        guard let context = state.context else { preconditionFailure("it is prepared") }
        let (keys, settings, epochs) = (state.keys, state.settings, epochs)
        return zip(arguments[GatewayOptions.publish], state.publishing).enumerated().map {
            (index, part) in
            let (publication, bound) = part
            return Publisher(
                of: stores.filter(publication.covers),
                state.stores.filter { publication.covers($0.name) }, epochs, on: bound.socket,
                at: bound.address
            ) { () throws(LibraryFailure) in
                try Self.bind(
                    for: .publish(index), to: bound.address, in: context, keys, settings
                ).socket
            }
        }
    }

    // MARK: With the node

    func open(
        _ store: StoreName, of state: HostedState, on node: Node, patience: Duration
    ) async throws(NodeError) -> HostedHandle {
        let isFirst = self.state.withLock { state in
            defer { state.isFollowing = true }
            return !state.isFollowing
        }
        if isFirst { follow(node.events) }
        let mailbox = mailbox
        let served = try await state.type.serve(
            store, on: node, patience: patience, payloadBytesMax: node.settings.payloadBytesMax,
            epochs: epochs,
            announce: { [streams] in
                mailbox.announce()
                streams.wake(store)
            })
        self.state.withLock { $0.stores.append(served) }
        return HostedHandle(served)
    }

    func serve(
        _ node: Node, in environment: CommandEnvironment
    ) async throws(CommandFailure) -> (fields: JSONFields, text: String) {
        let (mailbox, waker, epochs) = (mailbox, waker, epochs)
        if let log = await node.status.log { epochs.begin(log) }
        if state.withLock(\.stores.isEmpty) {
            // A node that hosts nothing is given no entries, and the console shows them.
            let last = try await failing { () async throws(NodeError) in
                try await node.sequencerStatus().last
            }
            node.core.follow(from: last.next)
        }
        // Used under the lock, and by the thread after it.
        nonisolated(unsafe) var failure: CommandFailure?
        let addresses = state.withLock { state -> (publish: [String], ask: String?) in
            do {
                let isAsked = state.asking != nil || arguments[MonitoringOptions.http] != nil
                let desk =
                    isAsked
                    ? Desk(state.asking?.socket, state.stores, node, epochs, state.settings) {
                        mailbox.post(.outcome($0))
                    } : nil
                let thread = GatewayThread(
                    mailbox: mailbox, waker: waker, publishers: publishers(state), desk: desk,
                    authenticator: state.authenticator, keys: state.keys,
                    report: { Self.tell($0, environment) })
                let stores = state.stores
                state.overview = (
                    node,
                    Overview(
                        of: node, at: arguments[WorkerOptions.connect], ring,
                        mayChange: arguments[MonitoringOptions.httpToken] != nil, stores: { stores }
                    )
                )
                state.past = PastDesk(
                    PastReader(of: node.core.address, node.settings), knowing: known)
                state.thread = try NamedThread("conflux-gateway") { thread.run() }
                state.isServing = true
            } catch {
                failure = CommandFailure(.failed, "\(error)")
            }
            return (state.publishing.map(\.address), state.asking?.address)
        }
        if let failure { throw failure }
        let places = zip(arguments[GatewayOptions.publish], addresses.publish).map {
            (publication: $0, address: $1)
        }
        let words =
            places.map { publication, address in
                let part = publication.pattern.map { "\($0) " } ?? ""
                return "publishes \(part)at \(address)"
            } + [addresses.ask.map { "answers at \($0)" }].compactMap(\.self)
        return (
            ["ask": addresses.ask, "publish": Publication.field(places)],
            words.map { "; \($0)" }.joined()
        )
    }

    /// Ends the service of stores that the node no longer hosts.
    private func follow(_ events: AsyncStream<NodeEvent>) {
        Task { [mailbox] in
            for await event in events {
                let (name, reason, isOver): (StoreName, String, Bool)
                switch event {
                case .storeDropped(let store):
                    let text = "\(store) was dropped. Restart the gateway to serve it again."
                    (name, reason, isOver) = (store, text, true)
                // At an entry, it continues once that is skipped.
                case .storeStopped(let store, let sequence, let message):
                    (name, reason, isOver) = (store, message, sequence == nil)
                case .historyLost, .joined:
                    self.state.withLock { $0.past }?.forget()
                    continue
                default: continue
                }
                let served = self.state.withLock { $0.stores }.first { $0.name == name }
                served?.end(reason, isOver: isOver)
                mailbox.announce()
            }
        }
    }

    private static func tell(_ report: GatewayThread.Report, _ environment: CommandEnvironment) {
        switch report {
        case .unbound(let failure): environment.diagnostics.report(failure.failure)
        case .denied(let principal, let address):
            let name = principal.name?.text ?? ""
            environment.announce(
                "subscriberDenied", ["address": address, "name": name],
                text: """
                    the key \(name) may not subscribe at \(address), since it may not observe all stores that are \
                    published there; let it ask, or publish the stores that it may observe at another address, with \
                    --publish PATTERN=ADDRESS
                    """)
        }
    }

    /// Reads the authorised keys again on SIGHUP.
    private func reload(_ path: String, _ environment: CommandEnvironment) {
        environment.rereadKeys(path) { [self] authorized in
            guard var keys = state.withLock({ $0.keys }) else { return }
            keys.authorized = authorized
            state.withLock { [keys] in $0.keys = keys }
            mailbox.post(.keys(keys))
        }
    }

    func end() {
        state.withLock { state in
            state.isServing = false
            // It has the node, which is to end.
            state.overview = nil
        }
        mailbox.post(.stop)
        state.withLock { $0.thread }?.join()
    }
}
