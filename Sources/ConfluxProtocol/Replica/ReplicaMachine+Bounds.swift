extension ReplicaMachine {
    /// Everything that could grow, and how far it may.
    package var bounds: [Bound] {
        // A batch that is cut for a withdrawal gets larger; one that is alone may exceed the window.
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
            // What is under way when the bound is reached still comes.
            Bound("loadsMax", loads.activeCount, of: settings.loadsMax),
            // A store is loaded, or compared with what others have.
            Bound("loads", loads.count, of: 2 * hosting.count),
            Bound("waitersMax", waiterCount, of: settings.waitersMax),
            Bound("unasked", unasked.count, of: settings.waitersMax),
        ]
    }

    /// Whether the feed is followed, or to be.
    package var wantsFeed: Bool { feed != .unwanted }

    /// The bytes that wait behind a hole in the feed.
    package var bufferedBytes: Int { buffer.byteCount }

    /// Whether nothing of the feed is delivered until some of what was is handed to the stores.
    package var isDeliveryFull: Bool { outstandingBytes >= settings.deliveryBytesMax }

    /// Whether something waits until more of what was delivered is handed to the stores: then
    /// ``ReplicaInput/applied(_:)`` is due as soon as there is news.
    public var isDeliveryBlocked: Bool {
        isDeliveryFull || catchUps.outstandingBytes >= settings.catchUpBytesMax
    }
}
