import ConfluxLog
@_exported import ConfluxProtocol
@_exported import ConfluxVocabulary
import ConfluxZeroMQ
import Synchronization

/// A running sequencer: the process part that owns the end of the log.
///
/// It has two threads: one owns the sockets and the `SequencerMachine`, one the log. It serves
/// from ``start(_:events:)`` until ``stop()``, or until the log fails or is taken over by a newer
/// tenure.
public final class Sequencer: Sendable {
    /// Where nodes connect, with the port that was bound.
    public let address: String
    /// Where the feed is, with the port that was bound.
    public let feedAddress: String

    private let answers: Mailbox<SequencerInput>
    private let end = Mutex<
        (reason: SequencerEnd?, waiters: [CheckedContinuation<SequencerEnd, Never>])
    >(
        (nil, []))

    private init(
        address: String, feedAddress: String, answers: Mailbox<SequencerInput>
    ) {
        self.address = address
        self.feedAddress = feedAddress
        self.answers = answers
    }

    /// Opens the log, binds the sockets and begins a tenure.
    ///
    /// - Parameters:
    ///   - configuration: Where and how.
    ///   - events: Told what happens, on one of the sequencer's threads; it must not wait.
    /// - Returns: The sequencer. Nodes may connect at once; they are heard when the tenure has
    ///   begun (``SequencerEvent/serving(log:epoch:last:)``).
    /// - Throws: ``SequencerError`` when the log or an address is not to be had.
    public static func start(
        _ configuration: SequencerConfiguration,
        events: @escaping @Sendable (SequencerEvent) -> Void = { _ in }
    ) throws(SequencerError) -> Sequencer {
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
            }
        } catch {
            throw SequencerError(code: .logUnavailable, message: error.message)
        }
    }

    private static func start(
        _ configuration: SequencerConfiguration, log: Handover<any ActionLog>,
        events: @escaping @Sendable (SequencerEvent) -> Void
    ) throws(SequencerError) -> Sequencer {
        do throws(ZeroMQError) {
            let context = try ZeroMQContext()
            var socketSettings = SocketSettings()
            socketSettings.sendQueueMessages = 10_000
            socketSettings.receiveQueueMessages = 10_000
            let router = try RouterSocket(context, settings: socketSettings)
            var feedSettings = SocketSettings()
            // A subscriber that is this far behind loses commits and fetches them.
            feedSettings.sendQueueMessages = 1_000
            let feed = try XPublisherSocket(context, settings: feedSettings)
            let bound = try router.bind(Endpoint(configuration.bind))
            let feedBound = try feed.bind(feedEndpoint(configuration, router: bound))

            var settings = SequencerSettings(feed: announced(feedBound, router: bound))
            settings.allow(payloadBytesMax: configuration.payloadBytesMax)
            configuration.adjust(&settings)
            if let fault = settings.fault { throw ZeroMQError(.invalidSetting, fault) }

            let waker = try Waker()
            // Bounded by what causes an answer: one append, and the fetches under way.
            let answers = Mailbox<SequencerInput>(capacity: 1 << 16, waker: waker)
            let jobs = Mailbox<LogJob>(capacity: 1 << 16, waker: try Waker())
            let sequencer = Sequencer(
                address: bound.description, feedAddress: feedBound.description, answers: answers)
            let serving = Handover(
                try ServingThread(
                    machine: SequencerMachine(settings: settings), router: router, feed: feed,
                    waker: waker, answers: answers, jobs: jobs, events: events))
            let logThread = try NamedThread("conflux-log", stackBytes: 1 << 20) {
                LogThread(log: log.value, jobs: jobs, answer: { answers.post($0) }).run()
            }
            let contextHandover = Handover(context)
            _ = try NamedThread("conflux-serve", stackBytes: 1 << 20) {
                var reason = serving.value.run()
                logThread.join()
                do throws(ZeroMQError) {
                    try contextHandover.value.terminate()
                } catch {
                    reason = .logFailed(error.message)
                }
                answers.close()
                events(.ended(reason))
                sequencer.ended(reason)
            }
            return sequencer
        } catch {
            throw SequencerError(code: code(of: error), message: error.message)
        }
    }

    private static func code(of error: ZeroMQError) -> SequencerError.Code {
        switch error.code {
        case .addressInUse: .addressInUse
        case .invalidEndpoint, .addressNotAvailable: .invalidAddress
        case .invalidSetting: .invalidSetting
        default: .failed
        }
    }

    /// The feed stands beside the router: on the next port, or under the next name.
    private static func feedEndpoint(
        _ configuration: SequencerConfiguration, router: Endpoint
    ) throws(ZeroMQError) -> Endpoint {
        if let feed = configuration.feed { return try Endpoint(feed) }
        let wished = try Endpoint(configuration.bind)
        switch wished.transport {
        case .tcp(let host, let port):
            guard port < UInt16.max else {
                throw ZeroMQError(
                    .invalidEndpoint,
                    "The feed would have port 65536. Choose a lower port, or give the feed's own.")
            }
            return try Endpoint("tcp://\(host):\(port == 0 ? 0 : port + 1)")
        case .ipc(let path): return try Endpoint("ipc://\(path).feed")
        case .inproc(let name): return try Endpoint("inproc://\(name).feed")
        }
    }

    /// What the welcome says of the feed. Nodes reach it at the host that they connected to, unless
    /// it has a host of its own.
    private static func announced(_ feed: Endpoint, router: Endpoint) -> String {
        guard let port = feed.port, feed.host == router.host else { return feed.description }
        return "tcp://*:\(port)"
    }

    /// Ends the tenure cleanly: what was admitted is committed and receipted, nodes are told, the
    /// log is closed.
    ///
    /// - Returns: Why the tenure ended: `stopped`, if nothing else came first.
    @discardableResult
    public func stop() async -> SequencerEnd {
        answers.post(.stop)
        return await ended()
    }

    /// Waits until the tenure has ended.
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
            defer { end.waiters = [] }
            return end.waiters
        }
        for waiter in waiters { waiter.resume(returning: reason) }
    }
}
