import Testing

/// A mistake that somebody could make: a piece of code, and the same piece with the mistake. Each mistake
/// breaks one rule, and the simulator must find it.
struct PlantedBug: Sendable, CustomTestStringConvertible {
    let name: String
    /// The rule of the protocol that it breaks.
    let rule: Int
    /// The path of the file in `Sources`.
    let file: String
    /// The code without the mistake. The file has it exactly once.
    let original: String
    /// The code with the mistake. `PLANTED` is true while this mistake is chosen, and otherwise false.
    let planted: String
    /// A rare condition without which the mistake has no effect.
    var fault: String?
    /// The shape of the worlds in which the mistake has an effect; nil for any.
    var world: String?
    /// The states that nodes must host for the mistake to have an effect; nil for the simulator's own state.
    var states: String?

    var testDescription: String { "rule \(rule): \(name)" }

    static let all: [PlantedBug] =
        sequencer + conditions + requests + sessions + feed + history + shells + stores + effects
        + standbys + upgrades
}
