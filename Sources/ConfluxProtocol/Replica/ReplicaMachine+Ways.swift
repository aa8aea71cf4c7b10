/// The two ways to the sequencer: requests and their answers, and the feed. Each has a connection of its own, and can
/// fail alone. The node is connected while it hears from the sequencer in every way that it needs.
extension ReplicaMachine {
    /// The number of the question whether the sequencer is alive. *Use*: the numbers of other questions begin at 1.
    static let probeNumber: UInt64 = 0

    /// Whether the node has a session, and no ``ReplicaEvent/disconnected`` came since.
    public var isConnected: Bool { welcome != nil && !isDisconnected && phase != .ended }
    /// Whether the node hears from the sequencer in every way that it needs: by its answers, and by its feed if the
    /// node follows that.
    public var isWhole: Bool {
        phase == .joined && !isDisconnected && (feed == .unwanted || isFollowing)
    }

    /// Whether the subscription is proven, so that the feed counts.
    var isFollowing: Bool {
        if case .following = feed { true } else { false }
    }

    /// Whether something that this node wants to host waits for the sequencer, and not for this process.
    ///
    /// - Parameter subject: A store or a state.
    /// - Returns: True also for one that the machine does not know yet.
    public func awaitsSequencer(for subject: HostingSubject) -> Bool {
        guard isWhole, case .opened = hosting[subject]?.phase else { return true }
        return false
    }

    mutating func disconnect(into effects: inout [ReplicaEffect]) {
        guard !isDisconnected else { return }
        isDisconnected = true
        effects.append(.event(.disconnected))
    }

    /// The feed must prove itself anew. If it is still to do so for the same connection, its time goes on: a feed that
    /// breaks off again and again is as silent as one that brings nothing.
    mutating func prove(_ isAnew: Bool, at now: Duration) {
        if case .proving = feed, !isAnew { return }
        feed = .proving(since: now)
    }

    /// The node hears from the sequencer in every way again. If it follows the feed, that is so only once the feed has
    /// proved itself.
    mutating func reconnect(into effects: inout [ReplicaEffect]) {
        isDisconnected = false
        effects.append(.event(.reconnected(epoch)))
    }

    /// Asks whether the sequencer is alive. A node that follows no feed has no other sign of life, and a feed does not
    /// show that requests arrive.
    mutating func probe(at now: Duration, into effects: inout [ReplicaEffect]) {
        probedAt = now
        ask(
            Question(
                number: Self.probeNumber, patience: settings.feedSilenceMax, body: .alive),
            into: &effects)
    }

    /// Whether nothing came since the last probe.
    var isProbed: Bool { probedAt > heardAt }
    var probeDue: Duration { heardAt + settings.feedSilenceMax / 4 }
    /// When the sequencer counts as gone. A process that was stopped itself asks first, since the answers to earlier
    /// questions may still be unread.
    var probeEnd: Duration { probedAt + settings.feedSilenceMax * 3 / 4 }

    /// An answer came. It does not count while an open has no answer: a busy node must not wait for that open for
    /// ever.
    mutating func hearAnswer(at now: Duration) {
        if !hosting.isAsking { owedSince = now }
    }
}
