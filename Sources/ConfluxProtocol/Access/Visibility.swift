import ConfluxVocabulary

// What a peer sees that may not observe all stores. Everything that leaves the sequencer passes through here: each
// frame of the feed, and each message to one peer. SECURITY.md has the same as a table.
//
// Every peer sees the names of stores, states, nodes and keys, and all numbers, times, origins and targets. Of a store
// that it may neither observe nor host, it sees no content: no payload of an action, no state, initial or later, and
// no place in a state. Of a state's actions it sees the shapes only if it may observe, host or dispatch to one of its
// stores. Whoever may dispatch to a store learns whether its actions were refused, in the state's own words.

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

    /// Returns the part of a message that may be read with these rights.
    ///
    /// What a peer may ask for is decided before (`Principal.denial(of:)`). But its rights may have changed until the
    /// answer is there.
    package func visible(_ message: SequencerMessage) -> SequencerMessage {
        guard !allowReadingAll else { return message }
        // There is no `default`: whoever adds a message decides here what it shows.
        switch message {
        case .entries(var entries):
            // Commits that can't be read are left out. The node asks for them again, and is told of the
            // damage.
            entries.commits = entries.commits.compactMap { visible(body: $0) }
            return .entries(entries)
        case .answer(var answer):
            answer.body = visible(answer.body)
            // Of a start that is hidden, nothing is shown.
            if case .failed = answer.body { answer.earlier = nil }
            return .answer(answer)
        case .snapshotServed(var served):
            // As if the snapshot were gone.
            if !sees(.store(served.chunk.place.store)) {
                served.chunk = .none(of: served.chunk.place)
            }
            return .snapshotServed(served)
        // They are for hosts of a store alone, and for those who opened it.
        case .opened, .divergence, .reload, .migrate, .snapshotRequest, .question: return message
        // They tell a peer about itself, about its own actions, and about the sequencer.
        case .welcome, .receipts, .rejection, .expected, .confirmed, .redirect, .bye:
            return message
        }
    }

    private func visible(_ body: Answer.Body) -> Answer.Body {
        switch body {
        case .status(var status):
            for index in status.stores.indices where !sees(.store(status.stores[index].store)) {
                status.stores[index].divergence?.path = nil
            }
            return .status(status)
        case .state(let store, _, _) where !sees(.store(store)):
            return .failed(.notAllowed, message: "this key may no longer observe \(store)")
        case .start(let store, _) where !sees(.store(store)):
            return .failed(.notAllowed, message: "this key may no longer observe \(store)")
        case .state, .start, .applied, .refused, .stopped, .concernedNobody, .failed, .alive,
            .reloaded, .sequencers, .timers, .lease, .leases,
            .handingOver:
            return body
        }
    }

    /// Returns the part of a question that may be answered with these rights.
    func answerable(_ question: Question) -> Question {
        var question = question
        if case .shapes(let state) = question.body,
            !touches(.state(state), with: [.observe, .host, .dispatch])
        {
            question.body = .status
        }
        return question
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
    private func sees(_ target: Target) -> Bool { touches(target, with: [.observe, .host]) }

    private func touches(_ target: Target, with permissions: [Permission]) -> Bool {
        permissions.contains { permission in
            patterns[permission]?.contains { $0.touches(target) } == true
        }
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
        let outline = BatchOutline(
            firstCounter: firstCounter, settled: settled, kind: kind, count: count)
        return Batch(
            outline, targets, encoded: rewritten.take(behind: head), headBytes: head.count)
    }
}
