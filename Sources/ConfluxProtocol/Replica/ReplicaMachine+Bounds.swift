extension ReplicaMachine {
    /// Everything that could grow, and how far it may.
    package var bounds: [Bound] {
        let window = max(
            Int(limits?.windowBytes ?? 0), Int(WireLimits.standard.batchBytesMax))
        return [
            Bound("bufferBytesMax", buffer.byteCount, of: settings.bufferBytesMax),
            Bound(
                "recentBytesMax", catchUp?.recent.byteCount ?? 0, of: settings.recentBytesMax),
            // The commit that reaches the bound is delivered whole.
            Bound(
                "deliveryBytesMax", outstandingBytes,
                of: settings.deliveryBytesMax + WireLimits.standard.frameBytesMax),
            Bound("windowBytes", submissions.unsettledBytes, of: window),
            // What is under way when the bound is reached still comes.
            Bound("loadsMax", loads.activeCount, of: settings.loadsMax),
            // A store is loaded, or compared with what others have.
            Bound("loads", loads.count, of: 2 * hosting.count),
            Bound("waitersMax", waiters.count, of: settings.waitersMax),
            Bound("heldOutcomesMax", held.count, of: settings.heldOutcomesMax + window),
        ]
    }

    /// The bytes that wait behind a hole in the feed.
    package var bufferedBytes: Int { buffer.byteCount }

    /// Whether nothing is delivered until some of what was is applied.
    package var isDeliveryFull: Bool { outstandingBytes >= settings.deliveryBytesMax }
}
