import ConfluxVocabulary

/// The entries that concern one store, cut out of their commits. They are kept aside for a store that nobody hosts,
/// when the log gives up what is below its floor (rule 21).
///
/// Each run of entries is a commit of its own, behind its length in bytes. The entries keep their numbers, their time
/// and their origins.
///
///     aside = *( u32 commit )
package struct AsideEntries: Sendable {
    /// The store.
    package let store: StoreName
    /// Its life.
    package let life: SequenceNumber
    /// The number behind which the entries begin.
    package let after: SequenceNumber
    private var writer = FrameWriter()

    /// Begins with what was kept before.
    ///
    /// - Parameters:
    ///   - store: The store.
    ///   - life: Its life.
    ///   - after: Entries up to this number are passed over.
    ///   - kept: What was kept aside for the store before, up to that number.
    package init(
        _ store: StoreName, life: SequenceNumber, after: SequenceNumber, behind kept: Bytes = []
    ) {
        self.store = store
        self.life = life
        self.after = after
        writer.raw(kept)
    }

    /// The encoding.
    package var bytes: [UInt8] { writer.bytes }

    /// Adds the entries of a commit that concern the store. Commits must come in their order.
    package mutating func add(_ commit: Commit) {
        guard commit.last > after else { return }
        var sequence = commit.first
        for block in commit.blocks {
            switch block {
            case .event(let event, _):
                if sequence > after, concerns(event) {
                    add(commit, at: sequence) { $0.append(event) }
                }
            case .batch(let incarnation, let batch):
                add(batch, of: incarnation, at: sequence, in: commit)
            }
            sequence = sequence.advanced(by: UInt64(block.count))
        }
    }

    private mutating func add(
        _ batch: Batch, of incarnation: Incarnation, at first: SequenceNumber, in commit: Commit
    ) {
        let rows = batch.targets.map { $0.target.concerns(store) }
        guard rows.contains(true) else { return }
        let after = after
        let runs = batch.cutting { entry, row in
            rows[row] && first.advanced(by: UInt64(entry)) > after
        }
        for run in runs {
            let sequence = first.advanced(by: run.firstCounter - batch.firstCounter)
            add(commit, at: sequence) { $0.append(run, from: incarnation) }
        }
    }

    private mutating func add(
        _ commit: Commit, at first: SequenceNumber, _ body: (inout CommitBuilder) -> Void
    ) {
        var builder = CommitBuilder(
            log: commit.log, epoch: commit.epoch, predecessor: commit.predecessor, first: first)
        body(&builder)
        writer.block(builder.finish(timestamp: commit.timestamp).dropFirst(Frame.size))
    }

    private func concerns(_ event: LogEvent) -> Bool {
        switch event {
        case .upgraded(let name, let life, _, _): name == store && life == self.life
        case .frozen(let name, let life, _): name == store && life == self.life
        case .thawed(let name, let life): name == store && life == self.life
        case .skipped(_, let target): target.concerns(store)
        // A replica counts the entries without effect from one digest point to the next.
        case .digestPoint(let name, let life): name == store && life == self.life
        case .claim, .joined, .visited, .left, .forgotten, .created, .dropped: false
        }
    }

    /// Decodes the commits of an encoding, with their sizes.
    ///
    /// - Throws: ``WireError``.
    package static func commits(
        of bytes: Bytes
    ) throws(WireError) -> [(commit: Commit, byteCount: Int)] {
        var reader = FrameReader(bytes, limits: .standard)
        var commits: [(commit: Commit, byteCount: Int)] = []
        while reader.remaining > 0 {
            let body = try reader.block("a commit")
            commits.append((try Commit.decode(body: body), body.count))
        }
        return commits
    }
}
