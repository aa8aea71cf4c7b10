import ConfluxVocabulary

/// When a further tenure begins after the log has failed.
struct TenureRenewal {
    /// The first pause. It doubles with each tenure that fails soon.
    static let pauseMin = Duration.milliseconds(100)
    /// A tenure that served for this long is no sign that the next one will fail soon.
    static let steadyMin = Duration.seconds(30)

    /// The longest pause; nil when the first failure ends the sequencer.
    let pauseMax: Duration?
    private var lastPause: Duration?
    private var begunAt: Duration?
    private var hasServed = false

    init(pauseMax: Duration?) {
        self.pauseMax = pauseMax
    }

    /// A tenure serves.
    mutating func begun(at now: Moment) {
        begunAt = now.monotonic
        hasServed = true
    }

    /// The log works, and another sequencer may serve: whoever started this one need not be there any more.
    mutating func stoodBy() { hasServed = true }

    /// The log has failed.
    ///
    /// - Returns: How long to wait; nil when no further tenure is to begin: also when none has
    ///   served or stood by yet, since then whoever started it is there to see it.
    mutating func pause(after now: Moment) -> Duration? {
        guard let pauseMax, hasServed else { return nil }
        let isSteady = begunAt.map { now.monotonic - $0 >= Self.steadyMin } ?? false
        begunAt = nil
        let pause = isSteady ? Self.pauseMin : lastPause.map { $0 * 2 } ?? Self.pauseMin
        lastPause = min(pause, max(pauseMax, Self.pauseMin))
        return lastPause
    }
}
