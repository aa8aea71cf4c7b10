/// What was taken at once too much of something that comes at a constant rate, as the time that it takes to come.
///
/// Everything that is taken costs the time in which as much comes. The bucket drains as time passes.
struct LeakyBucket: Sendable, Equatable {
    private var emptyAt = Duration.zero

    /// How long it takes to drain.
    func level(at now: Duration) -> Duration { max(emptyAt - now, .zero) }

    /// Adds the cost of what is taken, however large it is.
    mutating func add(_ cost: Duration, at now: Duration) {
        emptyAt = now + level(at: now) + cost
    }

    /// Forgets what was taken.
    mutating func empty() { emptyAt = .zero }
}
