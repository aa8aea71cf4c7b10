/// A node's connection to a sequencer's ROUTER. Frames arrive in order, or not at all.
final class Connection {
    /// The node may have ended: what it sent before still arrives.
    let node: SimulatedNode
    let sequencer: Int
    var up: [[UInt8]] = []
    var down: [[UInt8]] = []
    /// When the last frame in each direction arrives.
    var upAt = Duration.zero
    var downAt = Duration.zero

    init(node: SimulatedNode, sequencer: Int) {
        self.node = node
        self.sequencer = sequencer
    }
}

/// A node's subscription to a sequencer's feed.
struct Subscription {
    var node: Int
    var sequencer: Int
    var lastAt = Duration.zero
}
