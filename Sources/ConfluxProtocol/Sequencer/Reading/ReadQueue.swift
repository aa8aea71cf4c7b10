import ConfluxVocabulary

/// What nodes want to read from the log. The connections take turns, so that one that asks for much
/// does not delay one that asks for little.
struct ReadQueue: Sendable {
    /// The most requests of one connection that wait. *At the bound* a further request gets no
    /// answer, and the node repeats it. A node has two fetches and a few loads under way.
    static let perConnectionMax = 8

    /// The jobs of each connection in the order in which it asked. *Invariant*: no list is empty.
    private var waiting: [ConnectionID: [ReadJob]] = [:]
    /// Each connection of `waiting` once, in the order of their turns.
    private var turns: [ConnectionID] = []
    /// How many jobs are being read.
    private(set) var underWay = 0

    /// How many jobs wait.
    var count: Int { waiting.values.reduce(0) { $0 + $1.count } }
    /// The most jobs of one connection that wait.
    var longest: Int { waiting.values.lazy.map(\.count).max() ?? 0 }

    /// A node asks. A request that waits already is not added again.
    mutating func add(_ job: ReadJob) {
        let present = waiting[job.connection] ?? []
        guard present.count < Self.perConnectionMax, !present.contains(job) else { return }
        if present.isEmpty { turns.append(job.connection) }
        waiting[job.connection] = present + [job]
    }

    /// Takes the next job, which is then under way.
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

    /// The log has finished a job.
    mutating func end() {
        precondition(underWay > 0, "more was read than was asked for")
        underWay -= 1
    }
}
