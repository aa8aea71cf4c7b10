import Testing

/// A mistake that somebody could make: a piece of code, and what stands there with the mistake in
/// it. Each breaks one rule, and the simulator must find it.
struct PlantedBug: Sendable, CustomTestStringConvertible {
    let name: String
    /// The rule of the protocol that it breaks.
    let rule: Int
    /// Below `Sources`.
    let file: String
    /// What stands there; exactly once.
    let original: String
    /// What stands there then. `PLANTED` is true while this mistake is chosen, and false else.
    let planted: String
    /// What must happen for it to matter, where that is rare.
    var fault: String?
    /// The shape that the world must have for it to matter: any unless given.
    var world: String?
    /// What nodes must host for it to matter: the simulator's own state unless given.
    var states: String?

    var testDescription: String { "rule \(rule): \(name)" }

    static let all: [PlantedBug] =
        sequencer + sessions + visits + feed + history + shells + stores + effects
        + standbys
}
