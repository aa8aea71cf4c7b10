import ConfluxVocabulary

/// The present lives, and the indexes of the work under way for them.
///
/// The work of a life changes only in ``change(_:_:)``, and lives are added and removed in one
/// place each, so the indexes always match. The cost of a lookup depends only on its result, not on
/// the number of stores.
struct LifeTable: Sendable {
    /// By store. *Invariant*: the `created` entry of each life is in the log, and its `dropped`
    /// entry is not.
    private(set) var lives: [StoreName: StoreLife] = [:]
    /// The stores that may get a digest point, in the order in which they became ready.
    private var ready = StoreQueue()
    /// The stores whose votes are awaited. *Invariant*: ordered by deadline, since every store
    /// waits equally long.
    private var open = StoreQueue()
    /// Those of them whose votes are complete.
    private var complete: Set<StoreName> = []
    /// The stores whose uploads wait for their turn, in order.
    private var waiting = StoreQueue()
    /// The stores whose snapshots are being uploaded. *Invariant*: no more than may be at once.
    private var active: Set<StoreName> = []

    var count: Int { lives.count }
    /// How many stores may get a digest point.
    var readyCount: Int { ready.count }
    /// How many snapshots are being uploaded.
    var activeCount: Int { active.count }
    /// How many snapshots are being uploaded, or wait for their turn.
    var uploadCount: Int { active.count + waiting.count }

    subscript(name: StoreName) -> StoreLife? { _read { yield lives[name] } }

    mutating func insert(_ record: StoreRecord, named name: StoreName) {
        remove(name)
        lives[name] = StoreLife(record: record)
    }

    /// Ends a life, and all work under way for it.
    mutating func remove(_ name: StoreName) {
        guard let life = lives.removeValue(forKey: name) else { return }
        index(name, from: life.work.place, to: StoreWork().place)
    }

    /// Changes what the log says of a store.
    mutating func record(_ name: StoreName, _ change: (inout StoreRecord) -> Void) {
        guard let index = lives.index(forKey: name) else { return }
        change(&lives.values[index].record)
    }

    /// Changes the work under way for a store.
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

    /// The stores whose votes can be decided, ascending: all are there, or time is up.
    func decidable(at now: Duration) -> [StoreName] {
        let late = open.prefix { lives[$0]?.work.votes.deadline.map { $0 <= now } ?? true }
        return complete.union(late).sorted()
    }

    /// The store whose upload begins next.
    var nextWaiting: StoreName? { waiting.first }

    /// The stores whose source did not answer in time, ascending.
    func overdue(at now: Duration) -> [StoreName] {
        active.filter { name in
            lives[name]?.work.upload?.deadline.map { $0 <= now } ?? false
        }.sorted()
    }

    /// The next time at which votes are decided, or at which a source is too late.
    var nextDeadline: Duration? {
        var next = open.first.flatMap { lives[$0]?.work.votes.deadline }
        for store in active {
            guard let deadline = lives[store]?.work.upload?.deadline else { continue }
            next = min(next ?? deadline, deadline)
        }
        return next
    }
}

extension StoreWork {
    /// The entries of a life in the indexes.
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
