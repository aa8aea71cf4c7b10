import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

extension Cluster.Disk {
    /// The epoch of the last commit.
    var lastEpoch: Epoch {
        guard let body = bodies.last?.body else { return .none }
        do {
            return try Commit.decode(body: body).epoch
        } catch {
            Issue.record("the last commit is not readable: \(error)")
            return .none
        }
    }

    /// The state of the log's first commits.
    func logState(commits count: Int) throws -> LogState {
        var logState = LogState(log: id)
        for entry in bodies.prefix(count) {
            try logState.apply(Commit.decode(body: entry.body), byteCount: entry.body.count)
        }
        return logState
    }

    /// Expects, at every boundary of commits, that a checkpoint and the commits after it are the whole log.
    func expectCheckpointsToFit(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let whole = try logState(commits: bodies.count)
        var before = LogState(log: id)
        for (index, entry) in bodies.enumerated() {
            try before.apply(Commit.decode(body: entry.body), byteCount: entry.body.count)
            let encoded = before.encoded()
            var logState = try LogState(checkpoint: encoded[...])
            #expect(
                logState == before, "the checkpoint at \(entry.last)",
                sourceLocation: sourceLocation)
            #expect(logState.encoded() == encoded, sourceLocation: sourceLocation)
            for later in bodies[(index + 1)...] {
                try logState.apply(Commit.decode(body: later.body), byteCount: later.body.count)
            }
            #expect(
                logState == whole, "from the checkpoint at \(entry.last)",
                sourceLocation: sourceLocation)
        }
    }
}

extension Cluster {
    /// Saves a checkpoint at the end of a commit, which depends on the epoch. So every scenario with
    /// a restart also starts from checkpoints: sometimes from none, sometimes from one at the end of the log,
    /// and usually from one with entries after it.
    mutating func checkpoint() {
        guard !disk.bodies.isEmpty else { return }
        let count = Int(disk.epoch.rawValue * 7) % (disk.bodies.count + 1)
        disk.checkpoints.removeAll()
        guard count > 0 else { return }
        do {
            let logState = try disk.logState(commits: count)
            disk.checkpoints.append((logState.last, logState.encoded()[...]))
        } catch {
            Issue.record("the log can't be replayed: \(error)")
        }
    }
}
