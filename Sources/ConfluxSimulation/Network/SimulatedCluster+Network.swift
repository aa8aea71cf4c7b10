import ConfluxProtocol
import ConfluxVocabulary

/// The network between the processes: connections that keep frames in order and may break at any time, and a
/// feed that guarantees nothing.
extension SimulatedCluster {
    // MARK: Connections

    /// A node's socket connects to the sequencer.
    func connect(_ process: Int) throws(Violation) {
        guard let node = nodes[process], node.connection == nil else { return }
        guard let reached = target(of: node) else {
            let isRoundOver = node.round?.moveOn() ?? true
            schedule(
                .connect(process: process),
                after: isRoundOver
                    ? random.duration(in: .milliseconds(20)...(.milliseconds(300))) : latency)
            return
        }
        let number = takeNumber()
        connections[number] = Connection(node: node, sequencer: reached)
        node.connection = number
        trace.note(now, "\(node.text) connects to sequencer \(reached)")
        // Frames that were not sent on the former connection go first.
        let unsent = node.unsent
        node.unsent = []
        if !unsent.isEmpty { marks.hit(.framesOutlivedConnection) }
        for frame in unsent { send(frame, from: node) }
        if node.isPaused {
            node.reconnectedWhilePaused = true
        } else {
            try handle(.reconnected, node)
            try turn(node)
        }
    }

    /// The sequencer at the end of a node's connection; nil if there is none.
    private func target(of node: SimulatedNode) -> Int? {
        if let round = node.round { return process(at: "\(round.current)") }
        return listening.flatMap { sequencers[$0] == nil ? nil : reached(from: $0) }
    }

    private func feedTarget(of node: SimulatedNode) -> Int? {
        if node.round != nil { return process(at: node.feed) }
        return listening.flatMap { sequencers[$0] == nil ? nil : reached(from: $0) }
    }

    /// The sequencer that an address leads to. If two rivals share an address, it may lead back to the former
    /// one.
    private func reached(from listening: Int) -> Int {
        isHostile && sequencers.count > 1 && random.chance(0.3)
            ? random.pick(sequencers.keys.sorted()) : listening
    }

    func send(_ frame: [UInt8], from node: SimulatedNode) {
        if strikes(plan.queueLoss) {
            marks.hit(.queueOverflowed)
            return
        }
        guard let number = node.connection, let connection = connections[number] else {
            if node.unsent.count < 1_000 { node.unsent.append(frame) }
            return
        }
        connection.up.append(frame)
        connection.upAt = max(connection.upAt, now + latency)
        timeline.schedule(.arriveUp(connection: number), at: connection.upAt)
    }

    func send(
        _ message: SequencerMessage, to number: UInt64, _ sequencer: SimulatedSequencer
    ) throws(Violation) {
        try observe(message, to: number, from: sequencer)
        guard let connection = connections[number], connection.sequencer == sequencer.process
        else { return }
        if strikes(plan.queueLoss) { return marks.hit(.queueOverflowed) }
        connection.down.append(Frame.encode(message, epoch: sequencer.machine.epoch))
        connection.downAt = max(connection.downAt, now + latency)
        timeline.schedule(.arriveDown(connection: number), at: connection.downAt)
    }

    /// Ends a connection. The serving sequencer notices a while later.
    func endConnection(_ number: UInt64) {
        guard let connection = connections.removeValue(forKey: number) else { return }
        timeline.schedule(
            .findEnd(process: connection.sequencer, connection: number),
            at: now + .milliseconds(Int(number % 8) * 50))
    }

    /// A process closes its connection: what it sent is still read.
    func closeConnection(_ number: UInt64) {
        guard let connection = connections[number] else { return }
        timeline.schedule(
            .findEnd(process: connection.sequencer, connection: number),
            at: max(now, connection.upAt) + .milliseconds(1 + Int(number % 8) * 50))
    }

    func findEnd(of number: UInt64, _ process: Int) {
        if let sequencer = sequencers[process], sequencer.isPaused {
            sequencer.deferred.append(.findEnd(process: process, connection: number))
            return
        }
        connections[number] = nil
        guard let sequencer = sequencers[process] else { return }
        tell(.disconnected(ConnectionID(rawValue: number)), sequencer)
    }

    /// Gives the machine an input that must have no effects.
    private func tell(_ input: SequencerInput, _ sequencer: SimulatedSequencer) {
        var effects: [SequencerEffect] = []
        sequencer.machine.handle(
            input, at: moment(of: sequencer), into: &effects)
        precondition(effects.isEmpty, "\(input) had effects")
    }

    func arriveUp(_ number: UInt64) throws(Violation) {
        guard let connection = connections[number],
            let sequencer = sequencers[connection.sequencer]
        else { return }
        if sequencer.isPaused {
            sequencer.deferred.append(.arriveUp(connection: number))
            return
        }
        guard sequencer.isServing else {
            guard sequencer.standby == nil else {
                return try keep(number, connection, sequencer)
            }
            sequencer.waiting[number, default: 0] += 1
            return
        }
        guard !connection.up.isEmpty else { return }
        let frame = connection.up.removeFirst()
        try take(frame[...], from: ConnectionID(rawValue: number), sequencer)
    }

    private func take(
        _ frame: Bytes, from connection: ConnectionID, _ sequencer: SimulatedSequencer
    ) throws(Violation) {
        let input = SequencerInput.frame(
            frame, limits: sequencer.machine.limits, from: connection,
            isBehind: strikes(plan.queueLoss))
        if case .surplus = input { marks.hit(.surplusRefused) }
        var vote: Vote?
        if case .received(let message, _, _, _) = input {
            trace.note(now, "  ↑ \(connection.rawValue) \(message.summary)")
            hear(message, from: connection)
            if case .digest(.vote(let heard)) = message { vote = heard }
            if case .submit(let batch) = message { note(batch, for: sequencer) }
        }
        sentBack = nil
        try handle(input, sequencer)
        if let vote, sentBack != connection.rawValue { count(vote, from: connection, sequencer) }
    }

    func arriveDown(_ number: UInt64) throws(Violation) {
        guard let connection = connections[number], let node = nodes[connection.node.process] else {
            return
        }
        if node.isPaused {
            node.deferred.append(.arriveDown(connection: number))
            return
        }
        guard !connection.down.isEmpty else { return }
        node.round?.heard()
        let frame = connection.down.removeFirst()
        do {
            let message = try Frame.decodeSequencerMessage(frame[...])
            let epoch = try Frame.header(of: frame[...]).epoch
            trace.note(now, "  ↓ \(node.text) \(message.summary) (epoch \(epoch))")
            try handle(.received(message, epoch: epoch), node)
        } catch let violation as Violation {
            throw violation
        } catch {
            throw Violation("order", "\(node.text) could not read a frame: \(error)")
        }
        try turn(node)
    }

    /// Breaks the connection. Most of what is under way on it is lost.
    func breakConnection(_ number: UInt64) {
        guard let connection = connections[number] else { return }
        endConnection(number)
        marks.hit(.connectionBroken)
        if !connection.up.isEmpty || !connection.down.isEmpty {
            marks.hit(.connectionBrokenUnderWay)
        }
        guard let node = nodes[connection.node.process], node.connection == number else { return }
        _ = node.round?.moveOn()
        trace.note(now, "the connection of \(node.text) breaks")
        node.connection = nil
        // The last frames may not have been sent yet: these survive.
        let kept = connection.up.isEmpty ? 0 : random.int(in: 0...connection.up.count)
        node.unsent = Array(connection.up.suffix(random.chance(0.5) ? 0 : kept))
        schedule(
            .connect(process: node.process),
            after: random.duration(in: .milliseconds(10)...(.milliseconds(400))))
    }

    /// Breaks what nodes have with a sequencer: all of it, or only some.
    func breakAll(of process: Int, if breaks: () -> Bool = { true }) {
        for (number, connection) in connections.sorted(by: { $0.key < $1.key })
        where connection.sequencer == process && breaks() { breakConnection(number) }
        for (number, subscription) in subscriptions.sorted(by: { $0.key < $1.key })
        where subscription.sequencer == process && breaks() { breakSubscription(number) }
    }

    /// A node asks a question.
    func ask(_ question: Question, _ node: SimulatedNode) {
        node.tells.inputs.withLock { $0.append(.ask(question)) }
        schedule(.tell(process: node.process), after: .zero)
    }

    // MARK: The feed

    func subscribe(_ process: Int) {
        guard let node = nodes[process], node.wantsFeed, node.subscription == nil else { return }
        guard let reached = feedTarget(of: node) else {
            schedule(
                .subscribe(process: process),
                after: random.duration(in: .milliseconds(20)...(.milliseconds(300))))
            return
        }
        let number = takeNumber()
        subscriptions[number] = Subscription(node: process, sequencer: reached)
        node.subscription = number
        if node.wasSubscribed {
            marks.hit(.feedReconnected)
            node.tells.inputs.withLock { $0.insert(.feedReconnected, at: 0) }
            schedule(.tell(process: process), after: .zero)
        }
        node.wasSubscribed = true
        if let welcome = sequencers[reached]?.welcome {
            schedule(.arriveFeed(subscription: number, welcome), after: latency)
        }
        schedule(.subscribed(process: reached), after: latency)
    }

    func breakSubscription(_ number: UInt64) {
        guard let subscription = subscriptions.removeValue(forKey: number),
            let node = nodes[subscription.node], node.subscription == number
        else { return }
        node.subscription = nil
        schedule(
            .subscribe(process: node.process),
            after: random.duration(in: .milliseconds(10)...(.milliseconds(400))))
    }

    func publish(_ frame: [UInt8], _ sequencer: SimulatedSequencer) {
        for number in subscriptions.keys.sorted() {
            guard var subscription = subscriptions[number],
                subscription.sequencer == sequencer.process
            else { continue }
            if isFeedLost || isCutFromNodes(sequencer.process) { continue }
            if strikes(plan.feedLoss) {
                marks.hit(.feedLost)
                continue
            }
            subscription.lastAt = max(subscription.lastAt, now + latency)
            subscriptions[number] = subscription
            timeline.schedule(
                .arriveFeed(subscription: number, frame), at: subscription.lastAt)
            if strikes(plan.feedDuplication) {
                marks.hit(.feedDoubled)
                schedule(
                    .arriveFeed(subscription: number, frame),
                    after: random.duration(in: .milliseconds(1)...(.milliseconds(500))))
            }
            if strikes(plan.feedDelay) {
                marks.hit(.feedDelayed)
                // The next frames overtake those under way.
                subscriptions[number]?.lastAt = .zero
            }
        }
    }

    func arriveFeed(_ number: UInt64, _ frame: [UInt8]) throws(Violation) {
        guard let subscription = subscriptions[number], let node = nodes[subscription.node] else {
            return
        }
        if node.isPaused {
            // A subscriber that does not read loses what exceeds its queues.
            if node.deferred.count < 200 {
                node.deferred.append(.arriveFeed(subscription: number, frame))
            }
            return
        }
        do {
            let epoch = try Frame.header(of: frame[...]).epoch
            switch try Frame.decodeFeedMessage(frame[...]) {
            case .commit(let commit):
                try handle(.fed(commit, byteCount: frame.count, epoch: epoch), node)
            case .beat(let beat):
                let lacks = (node.machine.live ?? .zero) < beat.last
                let knew = node.machine.remoteLast
                try handle(.beaten(beat, epoch: epoch), node)
                if lacks, knew < beat.last, node.machine.remoteLast == beat.last {
                    marks.hit(.lostLastSeenByBeat)
                }
            }
        } catch let violation as Violation {
            throw violation
        } catch {
            throw Violation("order", "\(node.text) could not read the feed: \(error)")
        }
        try turn(node)
    }
}
