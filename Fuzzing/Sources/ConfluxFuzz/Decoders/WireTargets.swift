import ConfluxVocabulary

@testable import ConfluxProtocol

extension FuzzTarget {
    /// The decoders of the wire and of the log. Any bytes lead to a value or to a typed error, and a value
    /// can be encoded again and decodes to the same.
    static let wireTargets: [FuzzTarget] = [
        FuzzTarget(name: "header", lengthMax: 64) { bytes in
            guard let header = read({ try Frame.header(of: bytes[...]) }) else { return }
            require(bytes.count >= Frame.size, "a header of \(bytes.count) bytes: \(header)")
        },
        FuzzTarget(name: "node-message", lengthMax: 4_096) { bytes in
            _ = read { try Frame.outline(ofSubmit: bytes[...]) }
            guard let message = read({ try Frame.decodeNodeMessage(bytes[...]) }) else { return }
            if case .submit(let batch) = message { check(batch) }
            let again = Frame.encode(message, by: Speaker(epoch: Epoch(1)))
            require(
                certain { try Frame.decodeNodeMessage(again[...]) } == message,
                "another: \(message)")
        },
        FuzzTarget(name: "sequencer-message", lengthMax: 4_096) { bytes in
            guard let message = read({ try Frame.decodeSequencerMessage(bytes[...]) }) else {
                return
            }
            let again = Frame.encode(message, epoch: Epoch(1))
            require(
                certain { try Frame.decodeSequencerMessage(again[...]) } == message,
                "another: \(message)")
            guard case .entries(let entries) = message else { return }
            for body in entries.commits {
                if let commit = read({ try Commit.decode(body: body) }) { check(commit) }
            }
        },
        FuzzTarget(name: "feed-message", lengthMax: 4_096) { bytes in
            _ = read { try Frame.commitBody(of: bytes[...]) }
            guard let message = read({ try Frame.decodeFeedMessage(bytes[...]) }) else { return }
            if case .commit(let commit) = message { check(commit) }
            let again = Frame.encode(message, epoch: Epoch(1))
            require(
                certain { try Frame.decodeFeedMessage(again[...]) } == message,
                "another: \(message)")
        },
        FuzzTarget(name: "commit-body", lengthMax: 4_096) { bytes in
            guard let commit = read({ try Commit.decode(body: bytes[...]) }) else { return }
            check(commit)
            // A reader who may not observe anything gets a commit with the same number of entries.
            let seen = Rights.none.visible(body: bytes[...]) ?? []
            let hidden = certain { try Commit.decode(body: seen) }
            require(
                hidden.count == commit.count && hidden.last == commit.last, "another: \(hidden)")
        },
        FuzzTarget(name: "rights", lengthMax: 512) { bytes in
            let words = String(decoding: bytes, as: UTF8.self).split(separator: " ")
            guard let rights = try? RightsText.read(words) else { return }
            for pattern in rights.patterns.values.joined() {
                require(StorePattern("\(pattern)") == pattern, "another: \(pattern)")
            }
        },
        FuzzTarget(name: "batch", lengthMax: 4_096) { bytes in
            if let batch = read({ try Batch.decode(bytes[...]) }) { check(batch) }
        },
        FuzzTarget(name: "bye", lengthMax: 256) { bytes in
            guard let bye = read({ try Frame.decodeBye(bytes[...]) }) else { return }
            let again = Frame.encode(.bye(bye) as NodeMessage, by: .unwelcomed)
            require(certain { try Frame.decodeBye(again[...]) } == bye, "another: \(bye)")
        },
    ]

    /// Decodes bytes. The only allowed results are a value or a `WireError`.
    private static func read<Value>(_ decode: () throws -> Value) -> Value? {
        do {
            return try decode()
        } catch let error as WireError {
            require(!error.message.isEmpty, "a \(error.byeCode) without words")
            return nil
        } catch {
            fail("no WireError: \(error)")
        }
    }

    /// Checks that all walks through a batch agree on its number of entries and on the places of its parts.
    private static func check(_ batch: Batch) {
        guard read({ try batch.validate() }) != nil else { return }
        if batch.isVoid {
            require(batch.targets.isEmpty && batch.entries.isEmpty, "void, and \(batch)")
            return
        }
        var count: UInt32 = 0
        batch.forEachEntry { row, _ in
            require(batch.targets.indices.contains(row), "row \(row) of \(batch.targets.count)")
            count += 1
        }
        require(count == batch.count, "\(count) entries, not \(batch.count)")
        // Every third entry is rejected.
        let refused = (batch.count + 1) / 3
        var admitted: UInt32 = 0
        for part in batch.splitting(admitting: { entry, _ in entry % 3 != 1 }) {
            _ = certain { try part.validate() }
            require(certain { try Batch.decode(part.encoded) } == part, "another: \(part)")
            admitted += part.count
        }
        let expected = batch.isAtomic && refused > 0 ? 0 : batch.count - refused
        require(admitted == expected, "\(admitted) admitted, not \(expected)")
    }

    /// Checks that a commit's counts add up, and that it is encoded as it was, except for skippable extensions.
    private static func check(_ commit: Commit) {
        let sum = commit.blocks.reduce(0) { $0 + UInt64($1.count) }
        require(sum == UInt64(commit.count), "\(sum) entries, not \(commit.count)")
        for case .batch(_, let batch) in commit.blocks { check(batch) }
        require(
            certain { try Commit.decode(body: commit.encodedBody()) } == commit,
            "another: \(commit)")
    }
}
