import ConfluxVocabulary

/// What nodes want to read of the log, and whose turn it is: one connection after the other, so that
/// nobody who asks much holds up who asks little.
struct ReadQueue: Sendable {
    /// The most requests of one connection that wait. *At the bound* a further one is left unanswered,
    /// and asked again. A node has two fetches and some loads under way.
    static let perConnectionMax = 8

    /// In the order in which each connection asked. *Invariant*: no list is empty.
    private var waiting: [ConnectionID: [ReadJob]] = [:]
    /// Each connection of `waiting` once, the next one first.
    private var turns: [ConnectionID] = []
    /// How many are being read for.
    private(set) var underWay = 0

    /// How many wait.
    var count: Int { waiting.values.reduce(0) { $0 + $1.count } }
    /// The most that wait of one connection.
    var longest: Int { waiting.values.lazy.map(\.count).max() ?? 0 }

    /// A node asks. Who asks again before its turn has come changes nothing.
    mutating func add(_ job: ReadJob) {
        let present = waiting[job.connection] ?? []
        guard present.count < Self.perConnectionMax, !present.contains(job) else { return }
        if present.isEmpty { turns.append(job.connection) }
        waiting[job.connection] = present + [job]
    }

    /// Takes the next one, which is under way from here on.
    mutating func take() -> ReadJob? {
        guard !turns.isEmpty else { return nil }
        let connection = turns.removeFirst()
        guard var jobs = waiting.removeValue(forKey: connection) else {
            preconditionFailure("it is the turn of \(connection), which asks for nothing")
        }
        let job = jobs.removeFirst()
        if !jobs.isEmpty {
            waiting[connection] = jobs
            turns.append(connection)
        }
        underWay += 1
        return job
    }

    /// The log has read what somebody asked for.
    mutating func end() {
        precondition(underWay > 0, "more was read than was asked for")
        underWay -= 1
    }
}
