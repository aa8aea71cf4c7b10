import ConfluxProtocol

/// A log with a bound.
extension SimulatedCluster {
    /// Checks that nothing but claims and checkpoints exceeds the bound.
    func checkSpace() throws(Violation) {
        guard disk.limitBytes < .max else { return }
        let used = disk.usedBytes
        guard used > disk.limitBytes + disk.unboundedBytes else { return }
        throw Violation("P7", "the log takes \(used) bytes, above \(disk.limitBytes)")
    }

    /// A sequencer receives actions.
    func note(_ batch: Batch, for sequencer: SimulatedSequencer) {
        guard !batch.isVoid,
            batch.targets.contains(where: { sequencer.machine.storeHoldingUp($0.target) != nil })
        else { return }
        marks.hit(.heldUp)
    }

    /// Why the log has no room although nothing fails any more; nil if it has.
    var whatFillsLog: String? {
        guard disk.space.room == .nearlyFull else { return nil }
        return "\(disk.usedBytes) of the log's \(disk.limitBytes) bytes are used, "
            + "\(disk.shelves.snapshots.byteCount) of them by snapshots, \(disk.unboundedBytes) by checkpoints"
    }
}
