import ConfluxVocabulary

// What somebody sees of the log who may not observe all of it: every entry with its number, its origin
// and what it concerns; but actions for stores that it may neither observe nor host, and the states that
// those began with, are empty.

extension Rights {
    /// What of a frame that everybody gets may be read with these rights.
    ///
    /// - Parameter frame: A frame of the feed.
    /// - Returns: The frame itself where nothing is hidden. Nil where it can't be read.
    package func visible(frame: Bytes) -> Bytes? {
        guard !allowReadingAll else { return frame }
        guard let header = try? Frame.header(of: frame) else { return nil }
        guard header.kind == .commit else { return frame }
        return visible(body: frame.dropFirst(Frame.size)).map { frame.prefix(Frame.size) + $0 }
    }

    /// What of an answer may be read with these rights.
    package func visible(_ message: SequencerMessage) -> SequencerMessage {
        guard !allowReadingAll, case .entries(var entries) = message else { return message }
        // What can't be read is not there: who asked asks again, and is told of the damage.
        entries.commits = entries.commits.compactMap { visible(body: $0) }
        return .entries(entries)
    }

    /// What of a commit's body may be read with these rights; nil if it can't be read.
    func visible(body: Bytes) -> Bytes? {
        guard let commit = try? Commit.decode(body: body) else { return nil }
        let blocks = commit.blocks.map { block -> Commit.Block in
            switch block {
            case .batch(let incarnation, let batch):
                .batch(incarnation, batch.emptying { !sees($0.target) })
            case .event(.created(let store, let schemaVersion, let initial), let owner)
            where !sees(.store(store)):
                .event(
                    .created(
                        store, schemaVersion: schemaVersion,
                        initial: EncodedState(coding: initial.coding, bytes: [])),
                    by: owner)
            case .event: block
            }
        }
        guard blocks != commit.blocks else { return body }
        return Commit(
            log: commit.log, epoch: commit.epoch, predecessor: commit.predecessor,
            first: commit.first, count: commit.count, timestamp: commit.timestamp, blocks: blocks
        ).encodedBody()
    }

    /// Whether a target concerns some store that may be read.
    private func sees(_ target: Target) -> Bool {
        for permission in [Permission.observe, .host] {
            if patterns[permission]?.contains(where: { $0.touches(target) }) == true { return true }
        }
        return false
    }
}

extension Batch {
    /// The same batch, in which payloads for some targets are empty.
    fileprivate func emptying(_ isHidden: (BatchTarget) -> Bool) -> Batch {
        let hidden = targets.map(isHidden)
        guard hidden.contains(true) else { return self }
        var rewritten = EntryBuffer()
        for entry in parsedEntries {
            let payload = hidden[entry.target] ? [] : entry.payload
            payload.withUnsafeBytes { rewritten.append(row: entry.target, payload: $0) }
        }
        let head = encoded[encoded.startIndex..<entries.startIndex]
        let bytes = Bytes(head + rewritten.bytes)
        return Batch(
            firstCounter: firstCounter, settled: settled, kind: kind, targets: targets,
            count: count, entries: bytes.dropFirst(head.count), encoded: bytes)
    }
}
