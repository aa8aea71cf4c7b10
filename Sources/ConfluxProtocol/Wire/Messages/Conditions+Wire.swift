import ConfluxVocabulary

// The conditions of a batch: an extension that must be understood, so that no sequencer takes an action without having
// judged its condition.
//
//     conditions = 1*( u16 sequence epoch )    ; the row, from 0, ascending; the version

extension FrameWriter {
    /// Writes the extensions of a batch, behind their length.
    mutating func conditions(of targets: [BatchTarget]) {
        let count = targets.count { $0.unchangedSince != nil }
        guard count > 0 else { return fixed(UInt32(0)) }
        let bytes = count * BatchLayout.conditionBytes
        fixed(UInt32(BatchLayout.conditionsHeadBytes + bytes))
        fixed(Frame.conditionsTag)
        fixed(UInt32(bytes))
        for (row, target) in targets.enumerated() {
            guard let version = target.unchangedSince else { continue }
            fixed(UInt16(row))
            version.write(to: &self)
        }
    }
}

extension FrameReader {
    /// Reads the extensions of a batch.
    mutating func readConditions(of targets: inout [BatchTarget]) throws(WireError) {
        while let (tag, content) = try nextExtension(knowing: Frame.conditionsTag) {
            guard tag == Frame.conditionsTag else { continue }
            var content = content
            var next = 0
            repeat {
                let at = content.offset
                let row = Int(try content.fixed(UInt16.self, "the row of a condition"))
                guard row >= next, row < targets.count, targets[row].mayHaveCondition else {
                    throw .malformed(
                        at: at,
                        expected: "the row of a condition: of one store or a lease, ascending")
                }
                targets[row].unchangedSince = try StoreVersion(reading: &content)
                next = row + 1
            } while content.remaining > 0
        }
    }
}

extension BatchTarget {
    /// The row of a batch that is taken only while the lease of a claim is held.
    ///
    /// - Parameter claim: The number and the epoch of the claim.
    /// - Returns: The row.
    public static func lease(_ claim: StoreVersion) -> BatchTarget {
        BatchTarget(
            target: .leases, life: claim.sequence, schemaVersion: 1, coding: .compact,
            unchangedSince: claim)
    }

    fileprivate var mayHaveCondition: Bool {
        if case .store = target { return true }
        return target == .leases && life != .zero
    }
}

extension Batch {
    /// Whether any of its entries has a condition.
    var hasConditions: Bool { targets.contains { $0.unchangedSince != nil } }

    /// How many rows it has for its entries. The rows of an atomic batch behind these have only conditions.
    var entryRows: Int {
        guard isAtomic, hasConditions else { return targets.count }
        return parsedEntries.reduce(0) { max($0, $1.target + 1) }
    }

    /// The batch as it is logged: without conditions, which have been judged, and without the rows that have only these.
    var withoutConditions: Batch {
        guard hasConditions else { return self }
        var targets = Array(targets[..<entryRows])
        for row in targets.indices { targets[row].unchangedSince = nil }
        let outline = BatchOutline(
            firstCounter: firstCounter, settled: settled, kind: kind, count: count)
        return Batch(outline, targets, entries: entries)
    }
}
