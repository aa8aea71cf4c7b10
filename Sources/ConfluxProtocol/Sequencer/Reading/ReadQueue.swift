/// What nodes want to read from the log. The keys take turns, and so do the connections of each key. So neither a
/// connection that asks for much nor a key with many connections delays others.
struct ReadQueue: Sendable {
    /// The most requests of one connection that wait. *At the bound* a further request gets no
    /// answer, and the node repeats it. A node has two fetches and a few loads under way.
    static let perConnectionMax = 8

    /// The jobs of each connection in the order in which it asked. *Invariant*: no list is empty.
    private var waiting: [ConnectionID: [ReadJob]] = [:]
    /// The connections of each key in `waiting`, each once, in the order of their turns. *Invariant*: no
    /// list is empty.
    private var connections: [Sharer: [ConnectionID]] = [:]
    /// Each key of `connections` once, in the order of their turns.
    private var turns: [Sharer] = []
    /// How many jobs are being read.
    private(set) var underWay = 0

    /// How many jobs wait.
    var count: Int { waiting.values.reduce(0) { $0 + $1.count } }
    /// The most jobs of one connection that wait.
    var longest: Int { waiting.values.lazy.map(\.count).max() ?? 0 }

    /// A node asks. A request that waits already is not added again.
    ///
    /// - Returns: Whether it waits.
    mutating func add(_ job: ReadJob, of sharer: Sharer) -> Bool {
        let present = waiting[job.connection] ?? []
        guard !present.contains(job) else { return true }
        guard present.count < Self.perConnectionMax else { return false }
        waiting[job.connection] = present + [job]
        if present.isEmpty { line(up: job.connection, of: sharer) }
        return true
    }

    private mutating func line(up connection: ConnectionID, of sharer: Sharer) {
        if connections[sharer] == nil { turns.append(sharer) }
        connections[sharer, default: []].append(connection)
    }

    /// Takes the next job, which is then under way.
    mutating func take() -> ReadJob? {
        guard !turns.isEmpty else { return nil }
        let sharer = turns.removeFirst()
        guard var line = connections.removeValue(forKey: sharer),
            var jobs = waiting.removeValue(forKey: line[0])
        else { preconditionFailure("it is the turn of \(sharer), which asks for nothing") }
        let connection = line.removeFirst()
        let job = jobs.removeFirst()
        if !line.isEmpty {
            connections[sharer] = line
            turns.append(sharer)
        }
        if !jobs.isEmpty {
            waiting[connection] = jobs
            self.line(up: connection, of: sharer)
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
