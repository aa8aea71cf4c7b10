import ConfluxVocabulary

/// Decides when the next term begins after the log has failed.
struct TermRenewal {
    /// The first pause. It doubles after each term that fails early.
    static let pauseMin = Duration.milliseconds(100)
    /// A term that has served for this long does not double the pause.
    static let steadyMin = Duration.seconds(30)

    /// The longest pause; nil if the first failure ends the sequencer.
    let pauseMax: Duration?
    private var lastPause: Duration?
    private var begunAt: Duration?
    private var hasServed = false

    init(pauseMax: Duration?) {
        self.pauseMax = pauseMax
    }

    /// Notes that a term serves.
    mutating func begun(at now: Moment) {
        begunAt = now.monotonic
        hasServed = true
    }

    /// Notes that the log works and another sequencer may serve: whoever started this one may no longer be
    /// watching.
    mutating func stoodBy() { hasServed = true }

    /// Notes that the log has failed.
    ///
    /// - Returns: How long to wait; nil if no further term is to begin. That is also the case if this
    ///   process has neither served nor stood by yet: then whoever started it is still there to see the
    ///   failure.
    mutating func pause(after now: Moment) -> Duration? {
        guard let pauseMax, hasServed else { return nil }
        let isSteady = begunAt.map { now.monotonic - $0 >= Self.steadyMin } ?? false
        begunAt = nil
        let pause = isSteady ? Self.pauseMin : lastPause.map { $0 * 2 } ?? Self.pauseMin
        lastPause = min(pause, max(pauseMax, Self.pauseMin))
        return lastPause
    }
}
