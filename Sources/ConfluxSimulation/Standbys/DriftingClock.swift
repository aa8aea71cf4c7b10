/// A process's own clock, which goes slower or faster than time does. It never goes back.
struct DriftingClock: Sendable {
    /// What it showed in the beginning.
    let offset: Duration
    /// How far it goes in a thousand microseconds, in microseconds.
    let rate: Int

    /// One that shows the time.
    static let exact = DriftingClock(offset: .zero, rate: 1_000)

    /// What it shows at a time.
    func reading(at time: Duration) -> Duration {
        isExact ? time : offset + .microseconds(time.microseconds * rate / 1_000)
    }

    /// The first time at which it shows this, or more.
    func time(of reading: Duration) -> Duration {
        guard !isExact else { return reading }
        let due = (reading - offset).microseconds + 1
        return .microseconds(max(0, (due * 1_000 + rate - 1) / rate))
    }

    private var isExact: Bool { rate == 1_000 && offset == .zero }
}
