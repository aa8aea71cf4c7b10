/// A process's own clock, which runs slower or faster than real time. It never goes back.
struct DriftingClock: Sendable {
    /// Its reading at the start.
    let offset: Duration
    /// How many microseconds it advances in a thousand microseconds.
    let rate: Int

    /// A clock without drift.
    static let exact = DriftingClock(offset: .zero, rate: 1_000)

    /// Its reading at a time.
    func reading(at time: Duration) -> Duration {
        isExact ? time : offset + .microseconds(time.microseconds * rate / 1_000)
    }

    /// The first time at which its reading is this one or later.
    func time(of reading: Duration) -> Duration {
        guard !isExact else { return reading }
        let due = (reading - offset).microseconds + 1
        return .microseconds(max(0, (due * 1_000 + rate - 1) / rate))
    }

    private var isExact: Bool { rate == 1_000 && offset == .zero }
}
