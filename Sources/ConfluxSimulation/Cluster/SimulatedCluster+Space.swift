import ConfluxProtocol

/// A log with a bound.
extension SimulatedCluster {
    /// Checks that nothing but claims and checkpoints exceeds the bound.
    func checkSpace() throws(Violation) {
        guard disk.limitBytes < .max else { return }
        let used = disk.usedBytes
        guard used > disk.limitBytes + disk.unboundedBytes else { return }
        throw Violation(
            promise: "P7", message: "the log takes \(used) bytes, above \(disk.limitBytes)")
    }

    /// A sequencer receives actions.
    func note(_ batch: Batch, for sequencer: SimulatedSequencer) {
        guard !batch.isVoid,
            batch.targets.contains(where: { sequencer.machine.storeHoldingUp($0.target) != nil })
        else { return }
        marks.hit(.heldUp)
    }

    /// Whether the log is nearly full, and stays so until somebody opens or drops a store, or raises the bound: what is
    /// not entries takes more than half of the bound, or what a frozen store needs can't be kept aside.
    var isFullForGood: Bool {
        guard disk.space.room == .nearlyFull else { return false }
        let others = UInt64(disk.shelves.snapshots.byteCount) + disk.unboundedBytes
        return others > disk.limitBytes / 2 || server?.machine.isHeldByFrozenStore == true
    }

    /// Why the log has no room although nothing fails any more; nil if it has.
    var whatFillsLog: String? {
        guard disk.space.room == .nearlyFull, !isFullForGood else { return nil }
        return "\(disk.usedBytes) of the log's \(disk.limitBytes) bytes are used, "
            + "\(disk.shelves.snapshots.byteCount) of them by snapshots, \(disk.unboundedBytes) by checkpoints"
    }
}
