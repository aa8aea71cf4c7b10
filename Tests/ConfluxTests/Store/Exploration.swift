import Testing

/// A small world whose participants take one step after the other, in any order.
protocol ExploredWorld {
    associatedtype Key: Hashable

    /// All that the future depends on, and the checks.
    var key: Key { get }
    var participantCount: Int { get }
    /// What is wrong, if anything is.
    var faults: [String] { get }
    /// What is wrong with a world in which nobody can take a step.
    var faultsAtEnd: [String] { get }
    /// Has a participant take its next step.
    ///
    /// - Returns: Whether it can take one; if not, nothing has changed.
    mutating func step(_ participant: Int) -> Bool
}

/// Has the participants take their steps in every order there is.
///
/// - Returns: How many different worlds there are.
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
