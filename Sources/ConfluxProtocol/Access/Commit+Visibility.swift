import ConfluxVocabulary

// How the log looks to a peer that may not observe all of it. The peer sees every entry, with number, origin and
// target. Payloads for stores that it may neither observe nor host are empty, and so are the initial states of these
// stores.

extension Rights {
    /// Returns the part of a feed frame that may be read with these rights.
    ///
    /// - Parameter frame: A frame of the feed.
    /// - Returns: The frame itself if nothing is hidden; nil if the frame can't be read.
    package func visible(frame: Bytes) -> Bytes? {
        guard !allowReadingAll else { return frame }
        guard let header = try? Frame.header(of: frame) else { return nil }
        guard header.kind == .commit else { return frame }
        return visible(body: frame.dropFirst(Frame.size)).map { frame.prefix(Frame.size) + $0 }
    }

    /// Returns the part of an answer that may be read with these rights.
    package func visible(_ message: SequencerMessage) -> SequencerMessage {
        guard !allowReadingAll, case .entries(var entries) = message else { return message }
        // Commits that can't be read are left out. The node asks for them again, and is told of the
        // damage.
        entries.commits = entries.commits.compactMap { visible(body: $0) }
        return .entries(entries)
    }

    /// Returns the part of a commit's body that may be read with these rights; nil if the body
    /// can't be read.
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

    /// Whether a target concerns any store that may be read.
    private func sees(_ target: Target) -> Bool {
        for permission in [Permission.observe, .host] {
            if patterns[permission]?.contains(where: { $0.touches(target) }) == true { return true }
        }
        return false
    }
}

extension Batch {
    /// Returns this batch, with empty payloads for the hidden targets.
    fileprivate func emptying(_ isHidden: (BatchTarget) -> Bool) -> Batch {
        let hidden = targets.map(isHidden)
        guard hidden.contains(true) else { return self }
        var rewritten = EntryBuffer()
        for entry in parsedEntries {
            let payload = hidden[entry.target] ? [] : entry.payload
            payload.withUnsafeBytes { rewritten.append(row: entry.target, payload: $0) }
        }
        let head = encoded[encoded.startIndex..<entries.startIndex]
        let bytes = rewritten.take(behind: head)
        return Batch(
            firstCounter: firstCounter, settled: settled, kind: kind, targets: targets,
            count: count, entries: bytes.dropFirst(head.count), encoded: bytes)
    }
}
