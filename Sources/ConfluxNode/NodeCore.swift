import Conflux
import ConfluxProtocol
import ConfluxVocabulary
import ConfluxZeroMQ
import Synchronization

/// A node's threads and what they share. ``Node`` is its public face. The command line also uses it
/// for observers.
package final class NodeCore: Sendable {
    let settings: NodeSettings
    /// The addresses that it was made with, separated by commas.
    package let address: String
    let scope: Scope
    let events: EventHub
    let outbox: Outbox
    let meter = NodeMeter()
    let stores = HostedStores()
    let port: LinkPort
    let jobs: Mailbox<ApplyJob>
    private let nextRequest = Atomic<UInt64>(1)
    private let firstJoin = OneShot<NodeError?>()
    private let diagnosis: AddressDiagnosis
    let sender = LinkSender()
    /// Why the node ended, once it has, and the callers that wait for the end.
    private let end = Mutex<(reason: ReplicaEnd?, waiters: [CheckedContinuation<Void, Never>])>(
        (nil, []))

    /// How many jobs the queue of the thread that applies holds. This is never reached: bytes bound
    /// the deliveries, and ``NodeSettings/jobsMax`` bounds the other jobs.
    private static let jobsCapacity = 1 << 20

    /// Starts the threads.
    ///
    /// - Parameters:
    ///   - address: Where the sequencer listens. Several addresses are separated by commas, if
    ///     sequencers stand by.
    ///   - settings: How the node behaves.
    ///   - role: Whether the node gets a session.
    ///   - scope: The scope of the node's stores.
    ///   - key: The key by which its session is found, if the session is to outlive this process
    ///     (rule 11).
    ///   - tap: Gets every commit that is delivered, whatever is hosted, on the thread that applies: in order, except
    ///     those with which a store catches up. While the tap waits, at most ``ReplicaSettings/deliveryBytesMax`` gather.
    /// - Throws: ``NodeError`` if the address is invalid, a bound is out of its range, the crash journal
    ///   can't be used, or the system refuses a socket or a thread.
    package init(
        address: String, settings: NodeSettings, role: Hello.Role, scope: Scope,
        key: SessionKey? = nil, tap: (@Sendable (Commit) -> Void)? = nil
    ) throws(NodeError) {
        self.settings = settings
        self.address = address
        self.scope = scope
        events = EventHub(eventsMax: settings.eventsMax)
        let port: LinkPort
        let jobs: Mailbox<ApplyJob>
        let addresses: [Endpoint]
        var relays: [Endpoint] = []
        do throws(ZeroMQError) {
            addresses = try Endpoint.list(address)
            if !settings.feeds.isEmpty {
                relays = try Endpoint.list(settings.feeds.joined(separator: ","))
                for relay in relays { try relay.requireConnectable() }
            }
            port = try LinkPort()
            jobs = Mailbox(capacity: Self.jobsCapacity, waker: try Waker())
        } catch {
            throw NodeError(error)
        }
        var journal: CrashJournal?
        if let path = settings.crashJournal { journal = try CrashJournal(at: path) }
        self.port = port
        diagnosis = AddressDiagnosis(of: addresses)
        self.jobs = jobs
        let waker = port.waker
        let sender = sender
        outbox = Outbox(
            to: address, bytesMax: settings.outboxBytesMax, policy: settings.outboxPolicy,
            limits: try Self.limits(settings),
            wake: {
                sender.send()
                waker.wake()
            },
            withdrawSent: { port.post(.withdraw(index: $0, $1)) })
        var replica = settings.replica
        replica.name = settings.name
        replica.role = role
        let machine = ReplicaMachine(
            settings: replica, nonce: key?.nonce ?? .random(), process: key.map { _ in .random() })
        try start(addresses, relays, machine, journal, tap)
    }

    private static func limits(_ settings: NodeSettings) throws(NodeError) -> WireLimits {
        do {
            return try WireLimits(
                batchBytesMax: max(1 << 20, settings.payloadBytesMax) + (1 << 15),
                payloadBytesMax: settings.payloadBytesMax)
        } catch {
            throw NodeError(code: .openFailed, message: "\(error)")
        }
    }

    private func start(
        _ addresses: [Endpoint], _ relays: [Endpoint], _ machine: ReplicaMachine,
        _ journal: CrashJournal?,
        _ tap: (@Sendable (Commit) -> Void)?
    ) throws(NodeError) {
        let events = events
        let meter = meter
        let shelf = EncodingShelf(bytesMax: settings.encodingsBytesMax)
        let waker = port.waker
        let sender = sender
        let progress = SharedProgress { waker.wake() }
        let apply = ApplyThread(
            jobs: jobs, link: port, progress: progress,
            refusalBytesMax: settings.refusalBytesMax,
            announce: { event in
                meter.take(event)
                events.send(event)
            }, journal: journal, shelf: shelf, meter: meter, tap: tap)
        let scope = scope
        do throws(ZeroMQError) {
            let link = try LinkThread(
                addresses: addresses, machine: machine, port: port, outbox: outbox, jobs: jobs,
                apply: apply, jobsMax: max(1, settings.jobsMax), progress: progress, shelf: shelf,
                busyPollMax: settings.busyPollMax,
                security: settings.keys?.security ?? .none,
                relays: (relays, settings.feedRetryPause), meter: meter,
                diagnosis: diagnosis,
                events: { [weak self] event in
                    meter.take(event)
                    events.send(event)
                    switch event {
                    case .joined(_, _, let incarnation):
                        self?.outbox.incarnation.store(
                            incarnation.rawValue, ordering: .relaxed)
                        self?.firstJoin.send(nil)
                    case .connectionRefused(let message):
                        self?.firstJoin.send(NodeError(code: .keyRefused, message: message))
                    default: break
                    }
                })
            apply.relieve = { [weak link] in link.flatMap { $0.relieve() } }
            sender.link = link
            let applyThread = try NamedThread("conflux-apply") {
                NodeThread.run { scope.run { apply.run() } }
            }
            _ = try NamedThread("conflux-link") { [weak self, stores] in
                let reason = NodeThread.run { scope.run { link.run() } }
                sender.link = nil
                applyThread.join()
                self?.ended(reason)
                // Nobody waits for a node that was released, but its stores and events may have readers.
                events.finish()
                stores.endAll()
            }
        } catch {
            throw NodeError(error)
        }
    }

    func takeRequest() -> UInt64 {
        nextRequest.wrappingAdd(1, ordering: .relaxed).oldValue
    }

    // MARK: Beginning and end

    private func ended(_ reason: ReplicaEnd) {
        let error =
            switch reason {
            case .left: NodeError.closed
            case .refused(let code, let message):
                NodeError(
                    code: code == .notAllowed ? .keyRefused : .refused,
                    message: "The sequencer at \(address) says: \(message)",
                    bye: code)
            case .unreadable(let message): NodeError(code: .closed, message: message)
            }
        firstJoin.send(error)
        EventRoute.end(in: scope, to: outbox)
        meter.take(.closed(message: error.message))
        events.send(.closed(message: error.message))
        events.finish()
        stores.endAll()
        let waiters = end.withLock { end in
            end.reason = reason
            return exchange(&end.waiters, with: [])
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits for the first welcome.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait.
    ///   - isPatient: Whether to wait even though nothing listens at the address at present, or something else does.
    /// - Throws: ``NodeError`` with the code `unreachable`, and the reason as far as it is known;
    ///   with the code `notServing`; or with the reason of the sequencer's refusal.
    package func connected(
        within timeout: Duration, isPatient: Bool = true
    ) async throws(NodeError) {
        let late = NodeError(
            code: .unreachable,
            message: """
                No sequencer answered at \(address) within \(timeout). Is one running there \
                (conflux sequencer --bind \(address)), and is the port right?
                """)
        if !isPatient {
            diagnosis.whenFinal { [firstJoin] in firstJoin.send($0) }
        }
        var error = await firstJoin.receive(
            onCancel: .cancelled, timeout: timeout, onTimeout: late)
        diagnosis.end()
        if error?.code == .unreachable, let found = diagnosis.error { error = found }
        if let error {
            leave(timeout: .zero)
            throw error
        }
    }

    /// Waits until the node hears from the sequencer in every way that it needs: after ``follow(from:)`` that includes
    /// the feed.
    ///
    /// - Parameter patience: How long to wait.
    /// - Throws: ``NodeError`` with the code `unreachable`, which names the address and the reason; `cancelled`, `closed`.
    package func hears(within patience: Duration) async throws(NodeError) {
        let outcome = OneShot<NodeError?>()
        let number = keep(.hearing, patience, since: Moment.now.monotonic) { outcome.send($0) }
        let error = await outcome.receive(onCancel: .cancelled)
        port.post(.endVigil(number))
        if let error { throw error }
    }

    /// Begins a vigil.
    ///
    /// - Returns: Its number.
    func keep(
        _ goal: Vigil.Goal, _ patience: Duration, since begun: Duration,
        _ end: @escaping @Sendable (NodeError?) -> Void
    ) -> UInt64 {
        let number = takeRequest()
        let vigil = Vigil(goal: goal, patience: patience, since: begun, end: end)
        if port.post(.keep(number, vigil)) != .accepted { end(.closed) }
        return number
    }

    /// Makes the node leave once every action has its outcome, or after the timeout.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait for outcomes.
    ///   - isWithdrawing: Whether actions without an outcome are withdrawn first. What is not sent
    ///     yet is abandoned. The outcomes of the other actions tell which of them were ordered
    ///     nevertheless.
    package func leave(timeout: Duration, isWithdrawing: Bool = false) {
        port.post(.leave(timeout: timeout, isWithdrawing: isWithdrawing))
    }

    /// Waits until the node has ended.
    package func ended() async {
        await withCheckedContinuation { continuation in
            let isEnded = end.withLock { end in
                if end.reason == nil { end.waiters.append(continuation) }
                return end.reason != nil
            }
            if isEnded { continuation.resume() }
        }
    }

    // MARK: Without stores

    /// The node's events from the call on.
    package var eventStream: AsyncStream<NodeEvent> { events.stream() }

    /// Submits an action that is already encoded. Waits for room in the outbox, as its policy says.
    package func submit(_ target: BatchTarget, _ payload: [UInt8]) -> DispatchHandle {
        outbox.submit(Outbox.Destination(target), payload, mayWait: true)
    }

    /// Lets the actions that a function submits gather, so that they are sent together.
    ///
    /// - Parameter body: Submits actions, and waits for nothing. Only one thread may use this.
    package func gather(_ body: () -> Void) { outbox.gather(body) }

    /// Where this process continues, if its session was found by a key (rule 11).
    ///
    /// - Returns: nil before the first welcome, and without a key.
    package func resumption() async -> Resumption? { await linkStatus()?.resumption }

    /// Uses up counters without actions, after everything that was submitted before: for lines
    /// without an action.
    package func skip(_ count: UInt32) {
        outbox.skip(count)
    }

    /// Ends the batch, so that no batch reaches over this point: see `Resumption.lastCounter`.
    package func endBatch() {
        outbox.endBatch()
    }

    /// The outcomes up to this counter have arrived where they belong: no later process with this
    /// key learns them.
    package func told(through counter: UInt64) {
        port.post(.machine(.told(counter)))
    }

    /// Has every commit from a number on delivered, whatever is hosted.
    package func follow(from sequence: SequenceNumber) {
        port.post(.machine(.follow(from: sequence)))
    }

    // MARK: Questions

    func linkStatus() async -> LinkStatus? {
        let status = OneShot<LinkStatus?>()
        guard port.post(.status { status.send($0) }) == .accepted else { return nil }
        return await status.receive(onCancel: nil)
    }

    /// Asks a question that has one answer.
    package func ask(
        _ body: Question.Body, patience: Duration
    ) async throws(NodeError) -> Answer {
        try await port.ask(body, patience: patience)
    }

    /// Loads a snapshot of the log, or entries that are kept aside.
    ///
    /// - Parameters:
    ///   - place: Its place.
    ///   - reference: What the bytes must be.
    /// - Returns: The bytes; nil if the sequencer no longer has them, they are larger than the node takes, or the
    ///   node ends meanwhile.
    package func load(_ place: SnapshotPlace, _ reference: SnapshotReference) async -> Bytes? {
        let bytes = OneShot<Bytes?>()
        guard port.post(.load(place, reference, { bytes.send($0) })) == .accepted else {
            return nil
        }
        return await bytes.receive(onCancel: nil)
    }

    /// Asks a question that may have several answers. The last answer is marked.
    ///
    /// - Parameters:
    ///   - body: The question.
    ///   - patience: How long to wait.
    /// - Returns: The answers, and a function that ends them early.
    /// - Throws: ``NodeError`` with the code `closed`.
    package func answers(
        to body: Question.Body, patience: Duration
    ) throws(NodeError) -> (answers: AsyncStream<Answer>, end: @Sendable () -> Void) {
        // There is at most one answer per node, and the sequencer bounds the number of nodes.
        let (stream, continuation) = AsyncStream.makeStream(of: Answer.self)
        let command = LinkCommand.ask(body, patience: patience) { answer in
            continuation.yield(answer)
            if answer.isLast { continuation.finish() }
        }
        guard port.post(command) == .accepted else { throw .closed }
        return (stream, { continuation.finish() })
    }
}
