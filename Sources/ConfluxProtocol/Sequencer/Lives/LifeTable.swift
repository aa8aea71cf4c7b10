import ConfluxVocabulary

/// The present lives, and the indexes of what is under way for them.
///
/// The work of a life changes in ``change(_:_:)`` alone, and lives come and go in one place each, so that
/// no index can be left behind. No question costs more than its answer, however many stores there are.
struct LifeTable: Sendable {
    /// By store. *Invariant*: the `created` entry of each is in the log, and its `dropped` entry is not.
    private(set) var lives: [StoreName: StoreLife] = [:]
    /// The stores whose digest point can be admitted, in the order in which that came about.
    private var ready = StoreQueue()
    /// The stores whose votes are awaited. *Invariant*: by their deadlines, since all have the same time.
    private var open = StoreQueue()
    /// Those of them for whose votes nobody is awaited any more.
    private var complete: Set<StoreName> = []
    /// The stores whose snapshots wait for their turn, in their order.
    private var waiting = StoreQueue()
    /// The stores whose snapshots are on their way. *Invariant*: as many as may be at once.
    private var active: Set<StoreName> = []

    var count: Int { lives.count }
    /// How many digest points can be admitted.
    var readyCount: Int { ready.count }
    /// How many snapshots are on their way.
    var activeCount: Int { active.count }
    /// How many snapshots are on their way, or wait for their turn.
    var uploadCount: Int { active.count + waiting.count }

    subscript(name: StoreName) -> StoreLife? { _read { yield lives[name] } }

    mutating func insert(_ record: StoreRecord, named name: StoreName) {
        remove(name)
        lives[name] = StoreLife(record: record)
    }

    /// A life is over: whatever was under way for it is, too.
    mutating func remove(_ name: StoreName) {
        guard let life = lives.removeValue(forKey: name) else { return }
        index(name, from: life.work.place, to: StoreWork().place)
    }

    /// Puts down what the log says of a store.
    mutating func record(_ name: StoreName, _ change: (inout StoreRecord) -> Void) {
        guard let index = lives.index(forKey: name) else { return }
        change(&lives.values[index].record)
    }

    /// Changes what is under way for a store.
    ///
    /// - Returns: What the change returns; nil if the store has no life.
    mutating func change<Result>(
        _ name: StoreName, _ change: (inout StoreWork) -> Result
    ) -> Result? {
        guard let index = lives.index(forKey: name) else { return nil }
        let former = lives.values[index].work.place
        let result = change(&lives.values[index].work)
        self.index(name, from: former, to: lives.values[index].work.place)
        return result
    }

    private mutating func index(
        _ name: StoreName, from former: StoreWork.Place, to place: StoreWork.Place
    ) {
        guard place != former else { return }
        if place.isReady != former.isReady {
            if place.isReady { ready.append(name) } else { ready.remove(name) }
        }
        if place.deadline != former.deadline {
            open.remove(name)
            if place.deadline != nil { open.append(name) }
        }
        if place.isComplete != former.isComplete {
            if place.isComplete { complete.insert(name) } else { complete.remove(name) }
        }
        if place.upload != former.upload {
            if former.upload == .waiting { waiting.remove(name) } else { active.remove(name) }
            switch place.upload {
            case .waiting: waiting.append(name)
            case .active: active.insert(name)
            case nil: break
            }
        }
    }

    // MARK: What is next

    /// The store whose digest point is admitted next.
    var nextReady: StoreName? { ready.first }

    /// The stores whose votes can be decided, ascending: nobody is awaited, or time is up.
    func decidable(at now: Duration) -> [StoreName] {
        let late = open.prefix { lives[$0]?.work.votes.deadline.map { $0 <= now } ?? true }
        return complete.union(late).sorted()
    }

    /// The store whose snapshot has its turn next.
    var nextWaiting: StoreName? { waiting.first }

    /// The stores whose source did not send in time what it was asked for, ascending.
    func overdue(at now: Duration) -> [StoreName] {
        active.filter { name in
            lives[name]?.work.upload?.deadline.map { $0 <= now } ?? false
        }.sorted()
    }

    /// When votes are decided next, or a source has had its time.
    var nextDeadline: Duration? {
        let vote = open.first.flatMap { lives[$0]?.work.votes.deadline }
        let uploads = active.lazy.compactMap { lives[$0]?.work.upload?.deadline }
        return [vote, uploads.min()].compactMap { $0 }.min()
    }
}

extension StoreWork {
    /// Where the indexes have a life.
    fileprivate struct Place: Equatable {
        enum Upload: Equatable { case waiting, active }

        var isReady: Bool
        var deadline: Duration?
        var isComplete: Bool
        var upload: Upload?
    }

    fileprivate var place: Place {
        Place(
            isReady: isPointReady, deadline: votes.deadline, isComplete: votes.isComplete,
            upload: upload.map { $0.step == .waiting ? .waiting : .active })
    }
}
