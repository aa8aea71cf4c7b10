import ConfluxLog
@_exported import ConfluxProtocol
@_exported import ConfluxVocabulary
import ConfluxZeroMQ
import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A running sequencer: it appends to the log, and so decides the order of all actions.
///
/// It has six threads: one owns the sockets and the `SequencerMachine`, one owns the log, one reads the log for nodes,
/// one makes checkpoints, and at each of the two sockets one accepts connections. It serves from ``start(_:events:)``
/// until ``stop()``, until the end of the log proves damaged, or until a newer term takes over the log, which it
/// notices at once. If the log fails, for example because of a disk error, the sequencer begins a new term on the
/// same sockets: see ``SequencerConfiguration/renewalPauseMax``.
public final class Sequencer: Sendable {
    /// The address that nodes connect to, with the port that was bound.
    public let address: String
    /// The address of the feed, with the port that was bound.
    public let feedAddress: String

    private let answers: Mailbox<ServingInput>
    private let jobs: Mailbox<LogJob>
    private let reads: Mailbox<ReadTask>
    private let meter: SequencerMeter
    private let end = Mutex<
        (reason: SequencerEnd?, waiters: [CheckedContinuation<SequencerEnd, Never>])
    >(
        (nil, []))

    /// The most messages that wait for one node. *At the bound* further messages to it are lost, as on a
    /// broken connection, and the node asks for them again.
    private static let routerQueueMessages = 10_000
    /// Sets how many connections each socket may have. The rest of the file descriptors are left for the log
    /// and for connections that are about to end. An eighth of the connections is reserved for peers that
    /// have not identified themselves yet, and another eighth for peers that are about to be turned away.
    private static func setConnectionBounds(of settings: inout SocketSettings) {
        var limit = rlimit()
        #if canImport(Darwin)
            getrlimit(RLIMIT_NOFILE, &limit)
        #else
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        #endif
        let most = max(32, Int(clamping: limit.rlim_cur) / 2 - 64)
        settings.handshakesMax = min(settings.handshakesMax, most / 8)
        settings.connectionsMax = min(
            settings.connectionsMax, most - 2 * settings.handshakesMax)
    }
    /// The largest overhead of a node's message, beyond its payload.
    private static let messageOverheadBytes = 64 << 10
    /// The most jobs for the log that wait, and the most answers from it. Never reached, since their causes
    /// are bounded: an append, a confirmation, a piece of a checkpoint, and the reads under way
    /// (``SequencerSettings/readsMax``).
    private static let logJobsMax = 1 << 16

    private init(
        address: String, feedAddress: String, answers: Mailbox<ServingInput>,
        jobs: Mailbox<LogJob>, reads: Mailbox<ReadTask>, meter: SequencerMeter
    ) {
        self.address = address
        self.feedAddress = feedAddress
        self.answers = answers
        self.jobs = jobs
        self.reads = reads
        self.meter = meter
    }

    /// Opens the log, binds the sockets and begins a term.
    ///
    /// - Parameters:
    ///   - configuration: The addresses, the log and the settings.
    ///   - events: Gets the sequencer's events, on the sequencer's threads; it must not block.
    /// - Returns: The sequencer. Nodes may connect at once. They are served once the term has begun
    ///   (``SequencerEvent/serving(log:epoch:last:)``).
    /// - Throws: ``SequencerError`` if the log can't be opened or an address can't be bound.
    public static func start(
        _ configuration: SequencerConfiguration,
        events: @escaping @Sendable (SequencerEvent) -> Void = { _ in }
    ) throws(SequencerError) -> Sequencer {
        try checkAddresses(configuration)
        let log = try openLog(configuration.storage)
        do throws(SequencerError) {
            return try start(configuration, log: log, events: events)
        } catch {
            log.value.close()
            throw error
        }
    }

    private static func openLog(
        _ storage: SequencerConfiguration.Storage
    ) throws(SequencerError) -> Handover<any ActionLog> {
        do throws(LogError) {
            switch storage {
            case .folder(let path, let settings):
                return Handover(try SQLiteLog(directory: path, settings: settings))
            case .memory: return Handover(MemoryLog())
            case .boundedMemory(let bytes): return Handover(MemoryLog(limitBytes: bytes))
            case .opened(let open): return Handover(try open())
            case .shared(let open): return Handover(try open())
            }
        } catch {
            throw SequencerError(code: .logUnavailable, message: error.message)
        }
    }

    /// Opens the log anew after it failed. A log in memory can't be reopened, so the same one is used again.
    private static func reopen(
        _ log: any ActionLog, _ storage: SequencerConfiguration.Storage
    ) throws(LogError) -> any ActionLog {
        switch storage {
        case .memory, .boundedMemory: return log
        case .folder(let path, let settings):
            log.close()
            return try SQLiteLog(directory: path, settings: settings)
        case .opened(let open):
            log.close()
            return try open()
        case .shared(let open):
            log.close()
            return try open()
        }
    }

    private static func start(
        _ configuration: SequencerConfiguration, log: Handover<any ActionLog>,
        events tell: @escaping @Sendable (SequencerEvent) -> Void
    ) throws(SequencerError) -> Sequencer {
        let meter = SequencerMeter()
        let events: @Sendable (SequencerEvent) -> Void = { event in
            meter.take(event)
            tell(event)
        }
        do throws(ZeroMQError) {
            var settings = SequencerSettings(feed: "")
            settings.allow(payloadBytesMax: configuration.payloadBytesMax)
            settings.retention = configuration.retention
            configuration.adjust(&settings)

            var socketSettings = SocketSettings()
            socketSettings.sendQueueMessages = routerQueueMessages
            setConnectionBounds(of: &socketSettings)
            socketSettings.messageBytesMax =
                max(
                    Int(settings.batchBytesMax), Int(settings.initialStateBytesMax),
                    WireLimits.shownStateBytesMax) + messageOverheadBytes
            socketSettings.security = configuration.access.security
            let router = try RouterSocket(settings: socketSettings)
            var feedSettings = SocketSettings()
            setConnectionBounds(of: &feedSettings)
            feedSettings.security = configuration.access.security
            let feed = try PublisherSocket(settings: feedSettings)
            var keys: AuthorizedKeys?
            var own: CurvePublicKey?
            var readKeys: (@Sendable () -> Result<AuthorizedKeys, AuthorizedKeysError>)?
            if case .keys(let pair, let authorized, let reading) = configuration.access {
                keys = authorized
                own = pair.publicKey
                readKeys = reading
            }
            let bound = try router.bind(Endpoint(configuration.bind))
            let feedBound = try feed.bind(feedEndpoint(configuration, router: bound))

            settings.feed = try announced(
                feedBound, router: bound, relays: configuration.relays)
            settings.address = try advertised(configuration, bound)
            if let fault = settings.fault { throw ZeroMQError(.invalidSetting, fault) }
            guard configuration.checkpointBytes > 0 else {
                throw ZeroMQError(.invalidSetting, "checkpointBytes must be at least 1")
            }

            let waker = try Waker()
            let answers = Mailbox<ServingInput>(capacity: logJobsMax, waker: waker)
            let jobs = Mailbox<LogJob>(capacity: logJobsMax, waker: try Waker())
            let reads = Mailbox<ReadTask>(capacity: logJobsMax, waker: try Waker())
            let sequencer = Sequencer(
                address: bound.description, feedAddress: feedBound.description, answers: answers,
                jobs: jobs, reads: reads, meter: meter)
            let storage = configuration.storage
            let pace = ReadPace()
            let heartbeats = try HeartbeatThread.start(
                if: storage.isShared, at: settings.address, answers)
            let checkpoints = try CheckpointThread(log: jobs, events: events)
            let intervalBytes = configuration.checkpointBytes
            let appender = LogThread(
                jobs: jobs, meter: meter, answer: { answers.post(.log($0)) }
            ) { answer in
                LogWorker(
                    log: log.value,
                    checkpoints: checkpoints.schedule(intervalBytes: intervalBytes),
                    begin: { reader, epoch in
                        reads.post(ReadTask(epoch: epoch, job: .reading(through: reader)))
                    },
                    sharing: heartbeats?.sharing { answers.post(.hinted) },
                    reopen: { (log) throws(LogError) in try reopen(log, storage) },
                    doubt: { jobs.post(.review) },
                    answer: answer)
            }
            let serving = Handover(
                try ServingThread(
                    machine: SequencerMachine(settings: settings),
                    router: router, feed: feed,
                    waker: waker, answers: answers, jobs: jobs, appender: appender, reads: reads,
                    pace: pace, isMemory: storage.isMemory,
                    busyPollMax: configuration.busyPollMax,
                    renewal: TermRenewal(pauseMax: configuration.renewalPauseMax),
                    standby: heartbeats.map { ServingThread.Standby(of: $0) },
                    access: Access(own: own), authorized: keys,
                    reloads: KeyReloads(read: readKeys) { answers.post(.reloaded($0)) },
                    meter: meter, events: events))
            appender.relieve = serving.value.relief
            let logThread = try NamedThread("conflux-log", stackBytes: 1 << 20) { appender.run() }
            // The reader has low priority: it gets the processor time that live traffic leaves.
            let readThread = try NamedThread("conflux-read", stackBytes: 1 << 20, priority: .low) {
                ReadThread(
                    tasks: reads, pace: pace, answer: { answers.post(.read($0)) },
                    save: { jobs.post(.rest(.keepAside($0), of: $1)) }
                ).run()
            }
            let endLog: @Sendable () -> Void = {
                reads.post(ReadTask(epoch: .none, job: .close))
                readThread.join()
                // The log must still work while the last piece is saved.
                checkpoints.stop()
                jobs.post(.close)
                logThread.join()
            }
            let serve: @Sendable () -> Void = {
                let reason = serving.value.run()
                endLog()
                // The log may be claimed until here.
                heartbeats?.stop()
                answers.close()
                events(.ended(reason))
                sequencer.ended(reason)
            }
            do throws(ZeroMQError) {
                try checkpoints.start()
                _ = try NamedThread("conflux-serve", stackBytes: 1 << 20, body: serve)
            } catch {
                heartbeats?.stop()
                endLog()
                throw error
            }
            return sequencer
        } catch {
            throw SequencerError(code: code(of: error), message: error.message)
        }
    }

    private static func code(of error: ZeroMQError) -> SequencerError.Code {
        switch error.code {
        case .addressInUse: .addressInUse
        case .unreachable, .permissionDenied: .addressUnavailable
        case .invalidEndpoint, .addressNotAvailable: .invalidAddress
        case .invalidSetting: .invalidSetting
        default: .failed
        }
    }

    /// The sequencer's counters and measurements. Its threads publish most of them once a second, so they
    /// are up to two seconds old. Call it on any thread; it never waits for the sequencer's threads.
    public func metrics() -> SequencerMetrics {
        var metrics = meter.metrics(at: Moment.now.monotonic)
        metrics.bounds += [
            Bound("answers", answers.count, of: answers.capacity),
            Bound("logJobs", jobs.count, of: jobs.capacity),
            Bound("readTasks", reads.count, of: reads.capacity),
        ]
        return metrics
    }

    /// Changes which keys may connect. Connections whose keys are no longer authorised, or have other rights,
    /// end. Other connections are not affected.
    ///
    /// - Parameter keys: The keys that may connect from now on. Ignored if the sequencer uses no keys.
    public func authorize(_ keys: AuthorizedKeys) {
        answers.post(.authorize(keys))
    }

    /// Reads the authorised keys again, with the function in the configuration's access, and applies them
    /// like ``authorize(_:)``. The event `authorized` or `authorizationFailed` reports the outcome.
    public func reload() {
        answers.post(.reload)
    }

    /// Passes a function through the thread that owns the sockets to the thread that owns the log, which
    /// calls it. It is never called if one of the threads hangs or the sequencer has ended.
    ///
    /// - Parameter passed: Called at most once, on the log's thread; it must not block.
    package func probe(_ passed: @escaping @Sendable () -> Void) {
        answers.post(.probe(passed))
    }

    /// Ends the term cleanly: admitted actions are committed and get their receipts, nodes are told, and
    /// the log is closed.
    ///
    /// - Returns: Why the term ended: `stopped`, unless something else ended it first.
    @discardableResult
    public func stop() async -> SequencerEnd {
        answers.post(.stop)
        return await ended()
    }

    /// Waits until the term has ended.
    public func ended() async -> SequencerEnd {
        await withCheckedContinuation { continuation in
            let reason = end.withLock { end in
                if end.reason == nil { end.waiters.append(continuation) }
                return end.reason
            }
            if let reason { continuation.resume(returning: reason) }
        }
    }

    private func ended(_ reason: SequencerEnd) {
        let waiters = end.withLock { end in
            end.reason = reason
            return exchange(&end.waiters, with: [])
        }
        for waiter in waiters { waiter.resume(returning: reason) }
    }
}
