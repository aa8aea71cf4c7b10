import ConfluxThreads
import Synchronization

/// The dispatches of a scope in modes that are under way. A thread that adds one waits while there
/// are too many.
///
/// They belong to generations. A new generation begins whenever somebody waits for all that is
/// under way. What follows from a dispatch belongs to the dispatch's generation.
final class Backlog: Sendable {
    private struct Content {
        var underWay = 0
        /// The generation of what is dispatched now. It is open.
        var present = FlowGroup()
        var room = Room(countMax: LaneLimits.waitingMax)
    }

    private let content = Mutex(Content())

    /// Counts one more undertaking.
    ///
    /// - Parameters:
    ///   - undertaking: Identifies it, also in ``end(_:of:)``.
    ///   - parent: The generation of the dispatch from which it follows, and which is under way;
    ///     nil for the present generation.
    /// - Returns: Its generation.
    func begin(_ undertaking: AnyObject, as parent: FlowGroup?) -> FlowGroup {
        content.withLock { content in
            content.underWay += 1
            let generation = parent ?? content.present
            _ = generation.add(undertaking)
            return generation
        }
    }

    /// Counts one undertaking less.
    func end(_ undertaking: AnyObject, of generation: FlowGroup) {
        let places = content.withLock { content in
            content.underWay -= 1
            return content.room.free(at: content.underWay)
        }
        for place in places { place.open() }
        generation.remove(undertaking)
    }

    /// Calls a function once when all that is under way now has ended, with all that follows from it.
    func whenEnded(_ body: @escaping @Sendable () -> Void) {
        let (former, present) = content.withLock { content in
            let former = content.present
            content.present = FlowGroup()
            // Whoever waits for later ones waits for earlier ones, too.
            _ = content.present.add(former)
            return (former, content.present)
        }
        former.handle.whenEnded { _ in
            present.remove(former)
            body()
        }
        former.close()
    }

    /// Waits while there are too many, if this thread may wait.
    func waitForRoom() {
        guard ThreadMark.current.pointee.mayWait,
            let place = content.withLock({ $0.room.place(behind: $0.underWay) }),
            !place.wait(for: Room.stillnessMax)
        else { return }
        content.withLock { $0.room.widen(at: $0.underWay) }
    }
}
