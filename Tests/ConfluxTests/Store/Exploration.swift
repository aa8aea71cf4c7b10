import Testing

/// A small world whose participants take steps in any order.
protocol ExploredWorld {
    associatedtype Key: Hashable

    /// Everything that the future and the checks depend on.
    var key: Key { get }
    var participantCount: Int { get }
    /// The violations in this world.
    var faults: [String] { get }
    /// The violations in a world in which no participant can take a step.
    var faultsAtEnd: [String] { get }
    /// Makes a participant take its next step.
    ///
    /// - Returns: Whether it could. If not, nothing has changed.
    mutating func step(_ participant: Int) -> Bool
}

/// Explores every order in which the participants can take their steps.
///
/// - Returns: The number of different worlds.
func explore<World: ExploredWorld>(
    _ start: World, sourceLocation: SourceLocation = #_sourceLocation
) -> Int {
    var known: Set<World.Key> = [start.key]
    var open = [(world: start, way: [Int]())]
    while let (world, way) = open.popLast() {
        var isAtEnd = true
        for participant in 0..<world.participantCount {
            var next = world
            guard next.step(participant) else { continue }
            isAtEnd = false
            let way = way + [participant]
            if let fault = next.faults.first {
                Issue.record("\(fault); steps of \(way)", sourceLocation: sourceLocation)
                return known.count
            }
            if known.insert(next.key).inserted { open.append((next, way)) }
        }
        if isAtEnd, let fault = world.faultsAtEnd.first {
            Issue.record("\(fault) at the end; steps of \(way)", sourceLocation: sourceLocation)
            return known.count
        }
    }
    return known.count
}
