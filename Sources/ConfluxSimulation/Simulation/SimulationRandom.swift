import Conflux

/// The only random source of a simulation: the same seed gives the same numbers on every machine.
public struct SimulationRandom: RandomNumberGenerator, Sendable {
    private var generator: SplitMix64

    /// Makes a generator.
    ///
    /// - Parameter seed: The seed.
    public init(seed: UInt64) {
        // Mixing prevents neighbouring seeds from sharing a sequence.
        var mixer = SplitMix64(seed: seed)
        generator = SplitMix64(seed: mixer.next() ^ seed)
    }

    /// The next 64 random bits.
    public mutating func next() -> UInt64 { generator.next() }

    /// Draws whether something happens.
    ///
    /// - Parameter probability: Its probability, 0 to 1.
    /// - Returns: Whether it happens.
    public mutating func chance(_ probability: Double) -> Bool {
        guard probability > 0 else { return false }
        return Double(next() >> 11) < probability * Double(1 << 53)
    }

    /// Draws an integer.
    ///
    /// - Parameter range: The range; all numbers are equally likely.
    /// - Returns: The number.
    public mutating func int(in range: ClosedRange<Int>) -> Int {
        let span = UInt64(range.upperBound - range.lowerBound) + 1
        return range.lowerBound + Int(next() % span)
    }

    /// Draws a time.
    ///
    /// - Parameter range: The range, in steps of a microsecond; all times are equally likely.
    /// - Returns: The time.
    public mutating func duration(in range: ClosedRange<Duration>) -> Duration {
        let low = range.lowerBound.microseconds
        return .microseconds(low + int(in: 0...(range.upperBound.microseconds - low)))
    }

    /// A time around a mean: from a tenth of it to nearly three times as long.
    mutating func duration(around mean: Duration) -> Duration {
        let tenth = max(1, mean.microseconds / 10)
        return .microseconds(int(in: tenth...tenth * 10) + int(in: 0...tenth * 9))
    }

    /// Draws one of several values.
    ///
    /// - Parameter choices: The values, at least one.
    /// - Returns: The value.
    public mutating func pick<Element>(_ choices: [Element]) -> Element {
        choices[int(in: 0...choices.count - 1)]
    }

    /// Makes an independent generator, so that drawing from it does not affect other draws.
    mutating func fork() -> SimulationRandom { SimulationRandom(seed: next()) }
}

extension Duration {
    /// The duration in whole microseconds.
    var microseconds: Int {
        Int(components.seconds) * 1_000_000 + Int(components.attoseconds / 1_000_000_000_000)
    }

    /// Seconds with three decimals, as in traces.
    var text: String {
        let thousandths = microseconds / 1_000
        let rest = String(thousandths % 1_000)
        return "\(thousandths / 1_000)." + String(repeating: "0", count: 3 - rest.count) + rest
    }
}
