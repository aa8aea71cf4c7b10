extension ReplicaMachine {
    /// Everything that can grow, with its bound.
    package var bounds: [Bound] {
        // A batch that is cut for a withdrawal gets larger, and a single batch may exceed the window.
        let window = 2 * Int(limits?.windowBytes ?? .max) + 4_096
        return [
            Bound("bufferBytesMax", buffer.byteCount, of: settings.bufferBytesMax),
            Bound("recentBytesMax", catchUps.recent.byteCount, of: settings.recentBytesMax),
            Bound("catchUpsMax", catchUps.runners.count, of: CatchUps.runnersMax),
            Bound(
                "catchUpBytesMax", catchUps.outstandingBytes,
                of: settings.catchUpBytesMax + WireLimits.standard.frameBytesMax),
            // The commit that reaches the bound is delivered whole.
            Bound(
                "deliveryBytesMax", outstandingBytes,
                of: settings.deliveryBytesMax + WireLimits.standard.frameBytesMax),
            Bound(
                "windowBytes", submissions.isCrowded ? submissions.unsettledBytes : 0, of: window),
            // Further loads wait for their turn.
            Bound("loadsMax", loads.activeCount, of: settings.loadsMax),
            // Each store has at most one load for itself, one for a comparison and one for a migration.
            Bound("loads", loads.count, of: 3 * hosting.count),
            Bound("waitersMax", waiterCount, of: settings.waitersMax),
            Bound("unasked", unasked.count, of: settings.waitersMax),
        ]
    }

    /// Whether the node follows the feed, or is going to.
    package var wantsFeed: Bool { feed != .unwanted }

    /// Whether a batch of this size may be dispatched now: there is a session, everything before the batch is on its
    /// way, and the window has room (rule 27). A batch larger than the whole window is sent alone, so that the
    /// sequencer can reject it.
    public mutating func canSubmit(bytes: Int) -> Bool {
        guard phase == .joined, settings.role != .observer, let limits = welcome?.limits else {
            return false
        }
        return !submissions.isSendDue
            && (!submissions.isAwaiting
                || submissions.unsettledBytes + bytes <= Int(limits.windowBytes))
    }

    /// Makes the next batch to submit, of a builder's actions. Hand it over as ``ReplicaInput/dispatched(_:withdrawn:)``
    /// before any other input.
    ///
    /// - Parameters:
    ///   - builder: The actions, at least one. It is empty afterwards.
    ///   - isAtomic: Whether they are admitted together or not at all.
    /// - Returns: The batch, with the next counters.
    public mutating func batch(of builder: inout BatchBuilder, isAtomic: Bool) -> Batch {
        submissions.batch(of: &builder, isAtomic: isAtomic)
    }

    /// The bytes that wait behind a hole in the feed.
    package var bufferedBytes: Int { buffer.byteCount }

    /// Whether no commit of the feed is delivered until some of the delivered bytes are handed to
    /// the stores.
    package var isDeliveryFull: Bool { outstandingBytes >= settings.deliveryBytesMax }

    /// Whether something waits until more of the delivered bytes are handed to the stores. Then
    /// ``ReplicaInput/applied(_:)`` is due as soon as there is news.
    public var isDeliveryBlocked: Bool {
        mutating get {
            isDeliveryFull || catchUps.outstandingBytes >= settings.catchUpBytesMax
        }
    }
}

extension ReplicaMachine {
    /// Checks what its parts promise, and what holds between them.
    ///
    /// - Throws: What does not hold.
    package func checkInvariants() throws(BrokenInvariant) {
        try submissions.checkInvariants()
        try buffer.checkInvariants()
        try catchUps.checkInvariants(below: live)
        try hosting.checkInvariants()
        try hold(
            applied <= live ?? .zero,
            "\(applied) is applied, and \(live?.description ?? "nothing") delivered")
        try hold(
            phase != .joined || session != nil && welcome != nil, "it joined without a welcome")
    }
}
