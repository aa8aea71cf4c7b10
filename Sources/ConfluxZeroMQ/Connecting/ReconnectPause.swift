/// How long to wait before the next attempt to connect. The pause doubles with each failure in a row, up to a bound.
/// After a refusal it is longer.
struct ReconnectPause {
    private let settings: SocketSettings
    private var pause: Duration
    private var refusedPause = Self.refusedPauseMin

    private static let refusedPauseMin = Duration.seconds(1)

    init(_ settings: SocketSettings) {
        self.settings = settings
        pause = settings.reconnectInterval
    }

    /// Something was received: the next failure is the first in a row.
    mutating func reset() { self = ReconnectPause(settings) }

    /// How long to wait after a failure.
    mutating func next(after failure: ConnectionFailure) -> Duration {
        guard !failure.isRefusal else {
            defer { refusedPause = min(refusedPause * 2, settings.refusedIntervalMax) }
            return refusedPause
        }
        defer { pause = min(pause * 2, settings.reconnectIntervalMax) }
        // Random, so that the nodes do not all reconnect at once to a sequencer that was away.
        return pause + settings.reconnectInterval * Double.random(in: 0..<1)
    }
}
