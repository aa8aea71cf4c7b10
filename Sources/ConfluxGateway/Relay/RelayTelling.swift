import Conflux
import ConfluxMonitoring
import ConfluxWorker
import ConfluxZeroMQ
import Synchronization

/// Reports what happens to a relay: as events, and over HTTP.
struct RelayTelling {
    private let environment: CommandEnvironment
    private let address: String
    private let status = Status()
    private var isReady = false
    /// Where metrics are served; nil if nowhere.
    var http: String?

    /// What is served over HTTP.
    private final class Status: Sendable {
        let isConnected = Atomic(false)
    }

    init(_ environment: CommandEnvironment, at address: String) {
        self.environment = environment
        self.address = address
    }

    /// The functions for metrics and health over HTTP.
    func monitored(_ version: String) -> Monitored {
        let process = ProcessFamilies(
            program: environment.arguments.path.joined(separator: " "), version: version)
        let status = status
        return Monitored(
            metrics: {
                process.families(
                    isReady: status.isConnected.load(ordering: .relaxed), bounds: [])
            },
            livenessFaults: { [] },
            readinessFaults: {
                status.isConnected.load(ordering: .relaxed)
                    ? [] : ["the relay has no feed, so it does not listen"]
            })
    }

    /// Reports an event.
    ///
    /// - Returns: Whether the relay is ready with it, for the first time.
    mutating func tell(_ report: RelayThread.Report) -> Bool {
        switch report {
        case .connected(let feed):
            status.isConnected.store(true, ordering: .relaxed)
            defer { isReady = true }
            guard isReady else {
                tellReady(feed)
                return true
            }
            environment.announce(
                "connected", ["feed": "\(feed)"],
                text: "connected: the feed comes from \(feed), and is passed on again")
        case .disconnected(let feed, let reason):
            status.isConnected.store(false, ordering: .relaxed)
            let message =
                "The feed no longer comes from \(feed): \(reason). Until it comes again, the relay does not listen."
            environment.announce(
                "disconnected", ["feed": "\(feed)", "message": message], text: message)
        case .unreachable(let feed, let reason):
            status.isConnected.store(false, ordering: .relaxed)
            let message = "The feed can't be had from \(feed): \(reason)."
            environment.announce(
                "unreachable", ["feed": "\(feed)", "message": message], text: message)
        case .unbound(let failure):
            environment.diagnostics.report(failure.failure)
        case .denied(let principal):
            let name = principal.name?.text ?? ""
            environment.announce(
                "subscriberDenied", ["name": name],
                text: """
                    the key \(name) may not have the feed from a relay, since it may not observe everything; it gets its \
                    part from the sequencer itself
                    """)
        }
        return false
    }

    private func tellReady(_ feed: Endpoint) {
        environment.announce(
            "ready", ["address": address, "feed": "\(feed)", "http": http],
            text: """
                ready: passes the feed of \(feed) on at \(address)\
                \(http.map { "; metrics at http://\($0)/metrics" } ?? "")
                """)
    }
}
