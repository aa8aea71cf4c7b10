import Conflux
import ConfluxProtocol
import ConfluxZeroMQ
import Synchronization

/// A node's threads and what they share. ``Node`` is its public face; the command line uses it for
/// observers, too.
package final class NodeCore: Sendable {
    let settings: NodeSettings
    let address: String
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
    private let sender = LinkSender()
    /// Why the node ended, once it has, and who waits for that.
    private let end = Mutex<(reason: ReplicaEnd?, waiters: [CheckedContinuation<Void, Never>])>(
        (nil, []))

    /// How many jobs the queue of the thread that applies holds. Never reached: jobs are bounded by
    /// what causes them, deliveries in bytes and the rest by ``NodeSettings/jobsMax``.
    private static let jobsCapacity = 1 << 20

    /// Starts the threads.
    ///
    /// - Parameters:
    ///   - address: Where the sequencer listens; several, separated by commas, where others stand by.
    ///   - settings: How the node behaves.
    ///   - role: Whether it gets a session.
    ///   - scope: Where its stores belong.
    ///   - key: What its session is found by, if it is to outlive this process (rule 11).
    ///   - tap: Given every commit that is delivered, whatever is hosted, in order, on the thread
    ///     that applies. While it waits, no more than ``ReplicaSettings/deliveryBytesMax`` gather.
    /// - Throws: ``NodeError`` when the address is none, a bound is out of its range, or the crash
    ///   journal can't be used.
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
        do throws(ZeroMQError) {
            addresses = try Endpoint.list(address)
            port = try LinkPort()
            jobs = Mailbox(capacity: Self.jobsCapacity, waker: try Waker())
        } catch {
            throw NodeError(code: .invalidAddress, message: error.message)
        }
        var journal: CrashJournal?
        if let path = settings.crashJournal { journal = try CrashJournal(at: path) }
        self.port = port
        diagnosis = AddressDiagnosis(of: addresses)
        self.jobs = jobs
        let waker = port.waker
        let sender = sender
        outbox = Outbox(
            bytesMax: settings.outboxBytesMax, policy: settings.outboxPolicy,
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
        try start(addresses, machine, journal, tap)
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
        _ addresses: [Endpoint], _ machine: ReplicaMachine, _ journal: CrashJournal?,
        _ tap: (@Sendable (Commit) -> Void)?
    ) throws(NodeError) {
        let events = events
        let meter = meter
        let shelf = EncodingShelf(bytesMax: settings.encodingsBytesMax)
        let waker = port.waker
        let sender = sender
        let progress = SharedProgress { waker.wake() }
        let apply = ApplyThread(
            jobs: jobs, link: port, scope: scope, progress: progress,
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
                security: settings.keys?.security ?? .none, meter: meter,
                diagnosis: diagnosis,
                events: { [weak self] event in
                    meter.take(event)
                    events.send(event)
                    switch event {
                    case .joined: self?.firstJoin.send(nil)
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
            _ = try NamedThread("conflux-link") { [weak self] in
                let reason = NodeThread.run { link.run() }
                sender.link = nil
                applyThread.join()
                self?.ended(reason)
            }
        } catch {
            throw NodeError(code: .invalidAddress, message: error.message)
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
        meter.take(.closed(message: error.message))
        events.send(.closed(message: error.message))
        events.finish()
        let waiters = end.withLock { end in
            end.reason = reason
            defer { end.waiters = [] }
            return end.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits for the first welcome.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait.
    ///   - isPatient: Whether to wait although nobody serves at the address as it is now.
    /// - Throws: ``NodeError`` with the code `unreachable`, which says why as far as that is known, with
    ///   `notServing`, or with the reason of the sequencer's refusal.
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

    /// Has the node leave once everything has its outcome, or the time is over.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait for outcomes.
    ///   - isWithdrawing: Whether what has no outcome is withdrawn first: what is not sent yet is
    ///     given up, and of the rest the outcomes tell what was ordered nevertheless.
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

    /// What happens to the node, from the call on.
    package var eventStream: AsyncStream<NodeEvent> { events.stream() }

    /// Submits an action that is encoded already; waits for room in the outbox as its policy says.
    package func submit(_ target: BatchTarget, _ payload: [UInt8]) -> DispatchHandle {
        outbox.submit(Outbox.Aim(target), payload, mayWait: true)
    }

    /// Where this process continues, if its session was found by a key (rule 11).
    ///
    /// - Returns: nil before the first welcome, and without a key.
    package func resumption() async -> Resumption? { await linkStatus()?.resumption }

    /// Takes counters for nothing, behind what was submitted before: lines without an action.
    package func skip(_ count: UInt32) {
        outbox.skip(count)
    }

    /// Has no batch reach over this point: see `Resumption.lastCounter`.
    package func endBatch() {
        outbox.endBatch()
    }

    /// The outcomes up to this counter are where they are to be: no later process with this key
    /// will learn them.
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
        let first = OneShot<Answer?>()
        guard port.post(.ask(body, patience: patience) { first.send($0) }) == .accepted else {
            throw .closed
        }
        guard let answer = await first.receive(onCancel: nil) else { throw .cancelled }
        if case .failed(let failure, let message) = answer.body {
            throw NodeError(
                code: failure == .timedOut ? .timedOut : .unanswered, message: message,
                questionFailure: failure)
        }
        return answer
    }

    /// Asks a question that may have several answers; the last one says so.
    package func answers(
        to body: Question.Body, patience: Duration
    ) throws(NodeError) -> AsyncStream<Answer> {
        // At most one answer a node, and the sequencer bounds the nodes.
        let (stream, continuation) = AsyncStream.makeStream(of: Answer.self)
        let command = LinkCommand.ask(body, patience: patience) { answer in
            continuation.yield(answer)
            if answer.isLast { continuation.finish() }
        }
        guard port.post(command) == .accepted else { throw .closed }
        return stream
    }
}
