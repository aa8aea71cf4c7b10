import ConfluxProtocol
import ConfluxZeroMQ

/// How nodes find the serving one of several sequencers, and the faults between them.
extension SimulatedCluster {
    /// The addresses of all sequencers, in a random order for each node.
    func drawRound() -> AddressRound {
        let first = random.int(in: 0...plan.sequencers - 1)
        return AddressRound(
            (0..<plan.sequencers).map { place in
                endpoint(SimulatedStandby.address(of: (first + place) % plan.sequencers))
            })
    }

    private func endpoint(_ address: String) -> Endpoint {
        do throws(ZeroMQError) {
            return try Endpoint(address)
        } catch {
            preconditionFailure("\(error)")
        }
    }

    /// The process at an address, or at a feed's address; nil if there is none or it can't be reached.
    func process(at address: String) -> Int? {
        sequencers.values.first { sequencer in
            guard let slot = sequencer.standby?.slot else { return false }
            return SimulatedStandby.address(of: slot) == address
                || SimulatedStandby.feed(of: slot) == address
        }
        .flatMap { isCutFromNodes($0.process) ? nil : $0.process }
    }

    func isCutFromNodes(_ process: Int) -> Bool {
        now < cutFromNodes[process, default: .zero]
    }

    /// A node's socket moves to an address, or to the next one in its round.
    func move(_ node: SimulatedNode, to address: String?) {
        guard node.round != nil else { return }
        if let address {
            node.round?.follow(endpoint(address))
        } else {
            _ = node.round?.moveOn()
        }
        if let number = node.connection {
            node.connection = nil
            if let connection = connections[number] {
                node.unsent = Array(
                    connection.up.suffix(random.int(in: 0...connection.up.count)))
            }
            endConnection(number)
        }
        schedule(.connect(process: node.process), after: latency)
    }

    /// Leaves the feed, since its address has changed.
    func leaveFeed(_ node: SimulatedNode) {
        guard let number = node.subscription else { return }
        subscriptions[number] = nil
        node.subscription = nil
        node.wasSubscribed = false
    }

    // MARK: Faults

    /// Cuts one sequencer off from the log or from the nodes, or all of them from the log.
    func cut(_ fault: ClusterFault) {
        let length = random.duration(
            in: .milliseconds(200)...(random.chance(0.3) ? .seconds(10) : .seconds(3)))
        if fault == .stopLog {
            trace.note(now, "etcd does not answer for \(length.text) s")
            etcdStoppedUntil = max(etcdStoppedUntil, now + length)
            return
        }
        // Usually the serving one.
        let victim =
            random.chance(0.6) ? server : pickSequencer()
        guard let process = victim?.process else { return }
        trace.note(now, "sequencer \(process): \(fault) for \(length.text) s")
        if fault == .cutFromLog {
            cutFromLog[process] = now + length
            return
        }
        marks.hit(.cutOffFromNodes)
        cutFromNodes[process] = now + length
        breakAll(of: process)
    }

    /// Somebody asks the serving sequencer to hand over.
    func askHandover() {
        guard let node = pickNode() else { return }
        let question = Question(
            number: takeNumber(), patience: .seconds(2), body: .handOver(to: nil))
        ask(question, node)
    }
}
