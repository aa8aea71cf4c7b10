import ConfluxVocabulary

/// The entries that concern one store, cut out of their commits. They are kept aside for a store that nobody hosts,
/// when the log gives up what is below its floor (rule 21).
///
/// Each run of entries with consecutive numbers in a commit is a commit of its own, behind its length in bytes. The
/// entries keep their numbers, their time and their origins.
///
///     aside = *( u32 commit )
package struct AsideEntries: Sendable {
    /// The most bytes of a run beside its entries: its length, and the head of a commit with one batch for one target.
    static let headBytesMax = UInt64(
        4 + CommitLayout.blocksOffset - Frame.size + CommitLayout.batchPrefixBytes
            + BatchLayout.fixedBytes
            + max(BatchLayout.rowBytesMax, BatchLayout.eventRowBytesMax) + 4)

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
        var run: CommitBuilder?
        var sequence = commit.first
        for block in commit.blocks {
            switch block {
            case .event(let event, _):
                if sequence > after, concerns(event) {
                    extend(&run, at: sequence, in: commit) { $0.append(event) }
                }
            case .batch(let incarnation, let batch):
                for part in cutting(batch, at: sequence) {
                    let first = sequence.advanced(by: part.firstCounter - batch.firstCounter)
                    extend(&run, at: first, in: commit) { $0.append(part, from: incarnation) }
                }
            }
            sequence = sequence.advanced(by: UInt64(block.count))
        }
        end(&run, of: commit)
    }

    private func cutting(_ batch: Batch, at first: SequenceNumber) -> [Batch] {
        let rows = batch.targets.map { $0.target.concerns(store) }
        guard rows.contains(true) else { return [] }
        return batch.cutting { entry, row in
            rows[row] && first.advanced(by: UInt64(entry)) > after
        }
    }

    /// Adds to the run, or to a new one if others' entries are in between.
    private mutating func extend(
        _ run: inout CommitBuilder?, at first: SequenceNumber, in commit: Commit,
        _ body: (inout CommitBuilder) -> Void
    ) {
        if run?.next != first { end(&run, of: commit) }
        var builder =
            run.take()
            ?? CommitBuilder(
                log: commit.log, epoch: commit.epoch, predecessor: commit.predecessor, first: first)
        body(&builder)
        run = builder
    }

    private mutating func end(_ run: inout CommitBuilder?, of commit: Commit) {
        guard var builder = run.take() else { return }
        writer.put(builder.finish(timestamp: commit.timestamp).dropFirst(Frame.size))
    }

    private func concerns(_ event: LogEvent) -> Bool {
        switch event {
        case .upgraded(let name, let life, _, _, _): name == store && life == self.life
        case .frozen(let name, let life, _): name == store && life == self.life
        case .thawed(let name, let life): name == store && life == self.life
        case .skipped(_, let target): target.concerns(store)
        // A replica counts the entries without effect from one digest point to the next.
        case .digestPoint(let name, let life): name == store && life == self.life
        case .claim, .joined, .visited, .left, .forgotten, .created, .dropped, .handles, .forked:
            false
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
            let body: Bytes = try reader.read("a commit")
            commits.append((try Commit.decode(body: body), body.count))
        }
        return commits
    }
}
