/// How long to wait before the next attempt to connect: twice as long with each failure in a row, up to a bound.
/// Who is refused waits longer.
struct ReconnectPause {
    private let settings: SocketSettings
    private var pause: Duration
    private var refusedPause = Self.refusedPauseMin

    private static let refusedPauseMin = Duration.seconds(1)

    init(_ settings: SocketSettings) {
        self.settings = settings
        pause = settings.reconnectInterval
    }

    /// The other side has said something: the next failure is the first in a row.
    mutating func reset() { self = ReconnectPause(settings) }

    /// How long to wait behind a failure.
    mutating func next(after failure: ConnectionFailure) -> Duration {
        guard !failure.isRefusal else {
            defer { refusedPause = min(refusedPause * 2, settings.refusedIntervalMax) }
            return refusedPause
        }
        defer { pause = min(pause * 2, settings.reconnectIntervalMax) }
        // At random, so that the nodes of a sequencer that was away do not come all at once.
        return pause + settings.reconnectInterval * Double.random(in: 0..<1)
    }
}
