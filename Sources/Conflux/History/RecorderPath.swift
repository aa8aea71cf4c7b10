/// A step that a recorder is asked for.
enum RecorderMove: Sendable {
    /// By a number of values, back or forward.
    case by(Int)
    case to(Int)
    /// To a position among other values, which replace the present ones.
    case all(count: Int, position: Int)

    /// The position to which it leads.
    func target(from position: Int) -> Int {
        switch self {
        case .by(let distance): position + distance
        case .to(let position), .all(_, let position): position
        }
    }
}

/// Where a recorder is among its values, and where the steps that it was asked for will lead.
///
/// Steps are made in the store's lane, later than they are asked for. Whether a step is possible is decided twice:
/// when it is asked for, from where the steps before it will lead; and when it is made, since commits may have come
/// between.
struct RecorderPath: Sendable {
    /// A position among a number of values.
    struct Place: Equatable, Sendable {
        var position: Int
        /// *Invariant*: greater than the position.
        var count: Int
    }

    private let capacity: Int
    private var place = Place(position: 0, count: 1)
    /// *Use*: the steps that were asked for and are not made, in the order of asking.
    private var planned: [(number: Int, move: RecorderMove)] = []
    private var lastNumber = 0

    /// Begins at the only value that there is.
    init(capacity: Int) {
        self.capacity = capacity
    }

    var position: Int { place.position }
    /// Whether no step is planned.
    var isAtRest: Bool { planned.isEmpty }

    /// Where the steps that are planned lead.
    ///
    /// - Parameter isCommitted: Whether a commit comes before them.
    /// - Returns: The last place.
    func end(afterCommit isCommitted: Bool) -> Place {
        planned.reduce(isCommitted ? committed : place) { self.place($0, after: $1.move) ?? $0 }
    }

    /// Where a step leads; nil if it is impossible.
    func place(_ place: Place, after move: RecorderMove) -> Place? {
        var next = Place(position: move.target(from: place.position), count: place.count)
        if case .all(let count, _) = move { next.count = count }
        return (0..<next.count).contains(next.position) ? next : nil
    }

    /// Plans a step.
    ///
    /// - Returns: Its number.
    mutating func plan(_ move: RecorderMove) -> Int {
        lastNumber += 1
        planned.append((lastNumber, move))
        return lastNumber
    }

    /// Makes a step that was planned.
    ///
    /// - Returns: Whether it was possible.
    mutating func make(_ number: Int) -> Bool {
        guard let move = planned.first(where: { $0.number == number })?.move else { return false }
        forget(number)
        guard let next = place(place, after: move) else { return false }
        place = next
        return true
    }

    /// Drops a step, if it was not made.
    mutating func forget(_ number: Int) {
        planned.removeAll { $0.number == number }
    }

    /// Moves to where a commit leads, which has replaced all that lay ahead.
    mutating func commit() {
        place = committed
    }

    private var committed: Place {
        let position = min(place.position + 1, capacity - 1)
        return Place(position: position, count: position + 1)
    }
}
