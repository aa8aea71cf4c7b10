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
    /// The stores whose uploads wait for their turn, in order, for each key whose replica is asked
    /// first. *Invariant*: no queue is empty.
    private var waiting: [Sharer: StoreQueue] = [:]
    /// Each key of `waiting` once, in the order of their turns.
    private var turns: [Sharer] = []
    /// The stores whose snapshots are being uploaded. *Invariant*: no more than may be at once.
    private var active: Set<StoreName> = []
    /// Whose replicas give them.
    private var shares = Shares<Sharer>()
    /// The stores whose schema versions are rising.
    private(set) var rising: Set<StoreName> = []

    var count: Int { lives.count }
    /// How many stores may get a digest point.
    var readyCount: Int { ready.count }
    /// How many snapshots are being uploaded.
    var activeCount: Int { active.count }
    /// How many snapshots are being uploaded, or wait for their turn.
    var uploadCount: Int { active.count + waiting.values.reduce(0) { $0 + $1.count } }

    subscript(name: StoreName) -> StoreLife? { _read { yield lives[name] } }

    /// The indexes are what the work of the lives says.
    ///
    /// - Throws: What does not hold.
    func checkInvariants() throws(BrokenInvariant) {
        var (readies, opens, waits, uploads) = (0, 0, 0, Shares<Sharer>())
        for (name, life) in lives {
            let place = life.work.place
            if place.isReady { readies += 1 }
            if place.deadline != nil { opens += 1 }
            try hold(place.isReady == ready.contains(name), "\(name) is ready: \(place.isReady)")
            try hold(
                (place.deadline != nil) == open.contains(name),
                "the index and \(name) differ about its deadline")
            try hold(
                place.isComplete == complete.contains(name),
                "the index and \(name) differ about its votes")
            try hold(place.isRising == rising.contains(name), "\(name) rises: \(place.isRising)")
            switch place.upload {
            case .waiting(let sharer):
                waits += 1
                try hold(waiting[sharer]?.contains(name) == true, "\(name) has no turn")
            case .active(let sharer):
                uploads.add(of: sharer)
                try hold(active.contains(name), "\(name) is uploaded")
            case nil: try hold(!active.contains(name), "\(name) is not uploaded")
            }
        }
        let waiters = waiting.values.reduce(0) { $0 + $1.count }
        try hold(
            readies == ready.count && opens == open.count && waits == waiters,
            "a store that is gone has a place")
        try hold(
            complete.union(rising).union(active).isSubset(of: Set(lives.keys)), "a life is gone")
        try hold(uploads == shares, "\(uploads) are uploaded, and \(shares) are counted")
        try hold(
            Set(turns) == Set(waiting.keys) && turns.count == waiting.count, "turns of \(turns)")
    }

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
        if place.isRising != former.isRising {
            if place.isRising { rising.insert(name) } else { rising.remove(name) }
        }
        if place.upload != former.upload {
            switch former.upload {
            case .waiting(let sharer): leave(name, sharer)
            case .active(let sharer):
                active.remove(name)
                shares.remove(of: sharer)
            case nil: break
            }
            switch place.upload {
            case .waiting(let sharer):
                if waiting[sharer] == nil { turns.append(sharer) }
                waiting[sharer, default: StoreQueue()].append(name)
            case .active(let sharer):
                active.insert(name)
                shares.add(of: sharer)
            case nil: break
            }
        }
    }

    /// A store no longer waits. Whoever's it is, another one has the next turn.
    private mutating func leave(_ name: StoreName, _ sharer: Sharer) {
        waiting[sharer]?.remove(name)
        turns.removeAll { $0 == sharer }
        if waiting[sharer]?.first == nil {
            waiting[sharer] = nil
        } else {
            turns.append(sharer)
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
    ///
    /// - Parameter most: How many uploads there may be at once, which the keys share.
    /// - Returns: The store; nil if none waits, or none may begin.
    func nextWaiting(of most: Int) -> StoreName? {
        turns.first { shares.hasRoom(for: $0, of: most) }.flatMap { waiting[$0]?.first }
    }

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
        for store in rising {
            guard let deadline = lives[store]?.work.rise?.deadline else { continue }
            next = min(next ?? deadline, deadline)
        }
        return next
    }
}

extension StoreWork {
    /// The entries of a life in the indexes.
    fileprivate struct Place: Equatable {
        enum Upload: Equatable { case waiting(Sharer), active(Sharer) }

        var isReady: Bool
        var deadline: Duration?
        var isComplete: Bool
        var upload: Upload?
        var isRising: Bool
    }

    fileprivate var place: Place {
        Place(
            isReady: isPointReady, deadline: votes.deadline, isComplete: votes.isComplete,
            upload: upload.map {
                $0.step == .waiting ? .waiting($0.source.sharer) : .active($0.source.sharer)
            }, isRising: rise != nil)
    }
}
