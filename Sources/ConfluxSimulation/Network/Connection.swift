/// A node's connection to a sequencer's ROUTER. Frames arrive in their order, or not at all.
struct Connection {
    var node: Int
    var sequencer: Int
    var up: [[UInt8]] = []
    var down: [[UInt8]] = []
    /// When the last frame in each direction arrives.
    var upAt = Duration.zero
    var downAt = Duration.zero
}

/// A node's subscription to a sequencer's feed.
struct Subscription {
    var node: Int
    var sequencer: Int
    var lastAt = Duration.zero
}
