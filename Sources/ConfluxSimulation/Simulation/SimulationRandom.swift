import Conflux

/// The one source of chance in a simulation: the same seed gives the same numbers everywhere.
public struct SimulationRandom: RandomNumberGenerator, Sendable {
    private var generator: SplitMix64

    /// Makes a generator.
    ///
    /// - Parameter seed: What it begins with.
    public init(seed: UInt64) {
        // Neighbouring seeds share no sequence.
        var mixer = SplitMix64(seed: seed)
        generator = SplitMix64(seed: mixer.next() ^ seed)
    }

    /// The next 64 random bits.
    public mutating func next() -> UInt64 { generator.next() }

    /// Whether something happens.
    ///
    /// - Parameter probability: How likely it is, 0 to 1.
    /// - Returns: Whether it does.
    public mutating func chance(_ probability: Double) -> Bool {
        guard probability > 0 else { return false }
        return Double(next() >> 11) < probability * Double(1 << 53)
    }

    /// A whole number.
    ///
    /// - Parameter range: What it may be; each is as likely.
    /// - Returns: The number.
    public mutating func int(in range: ClosedRange<Int>) -> Int {
        let span = UInt64(range.upperBound - range.lowerBound) + 1
        return range.lowerBound + Int(next() % span)
    }

    /// A time.
    ///
    /// - Parameter range: What it may be, to the microsecond; each is as likely.
    /// - Returns: The time.
    public mutating func duration(in range: ClosedRange<Duration>) -> Duration {
        let low = range.lowerBound.microseconds
        return .microseconds(low + int(in: 0...(range.upperBound.microseconds - low)))
    }

    /// A time around a mean: from a tenth of it to nearly three times.
    mutating func duration(around mean: Duration) -> Duration {
        let tenth = max(1, mean.microseconds / 10)
        return .microseconds(int(in: tenth...tenth * 10) + int(in: 0...tenth * 9))
    }

    /// One of some.
    ///
    /// - Parameter choices: At least one.
    /// - Returns: The one.
    public mutating func pick<Element>(_ choices: [Element]) -> Element {
        choices[int(in: 0...choices.count - 1)]
    }

    /// A generator of its own, so that what draws from it disturbs nobody else.
    mutating func fork() -> SimulationRandom { SimulationRandom(seed: next()) }
}

extension Duration {
    /// Whole microseconds.
    var microseconds: Int {
        Int(components.seconds) * 1_000_000 + Int(components.attoseconds / 1_000_000_000_000)
    }

    /// Seconds with their thousandths, as traces show them.
    var text: String {
        let thousandths = microseconds / 1_000
        let rest = String(thousandths % 1_000)
        return "\(thousandths / 1_000)." + String(repeating: "0", count: 3 - rest.count) + rest
    }
}
