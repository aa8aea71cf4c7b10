import ConfluxVocabulary

@testable import ConfluxProtocol

/// Runs a script's commands on a ``Cluster``, and describes the effects of each.
struct ScriptRun {
    private var cluster = Cluster()
    /// The names of the nodes, in the order in which they joined. A node's number is its position, from 1.
    private var names: [String] = []
    private var tuning: [String: [(String, Int)]] = [:]
    private var stopped: [String: SimulatedNode] = [:]

    init() { cluster.isRecording = true }

    /// - Returns: The effects, one in each line.
    mutating func perform(_ command: Script.Command) throws(Script.Fault) -> [String] {
        let parsed = try ScriptCommand(command)
        let isGiven = command.words.first == ScriptCommand.given
        guard let shown = carryOut(parsed) else {
            throw Script.Fault(
                line: command.line,
                message: "'\(command.text)' names what is not there; nodes are: "
                    + names.joined(separator: ", "))
        }
        let narration = Narration(names: names)
        let lines = cluster.recorded.map { narration.line(of: $0) } + shown
        cluster.recorded.removeAll()
        return isGiven ? [] : Self.collapsing(lines)
    }

    /// Replaces a run of equal lines, such as beats, by one line and their number.
    private static func collapsing(_ lines: [String]) -> [String] {
        var runs: [(line: String, count: Int)] = []
        for line in lines {
            if runs.last?.line == line {
                runs[runs.count - 1].count += 1
            } else {
                runs.append((line, 1))
            }
        }
        return runs.map { $0.count == 1 ? $0.line : "\($0.line) (×\($0.count))" }
    }

    private func number(of name: String) -> Int? {
        names.lastIndex(of: name).map { $0 + 1 }
    }

    /// - Returns: Lines to show in addition to the effects, or nil if a name is unknown.
    private mutating func carryOut(_ command: ScriptCommand) -> [String]? {
        switch command {
        case .start: cluster.startSequencer()
        case .stop:
            cluster.handle(.stop)
            cluster.run()
        case .kill: cluster.killSequencer()
        case .restart: cluster.restartSequencer()
        case .disk(.slow): cluster.isDiskSlow = true
        case .disk(.fast): cluster.finishAppends()
        case .disk(.keeps): keepAppends()
        case .disk(.answers):
            for append in cluster.waitingAppends { cluster.queue.append(.logged(append)) }
            cluster.waitingAppends.removeAll()
            cluster.isDiskSlow = false
        case .loseTail(let count): cluster.disk.bodies.removeLast(count)
        case .newLog:
            cluster.disk = Cluster.Disk(
                id: Identifier(high: 7, low: cluster.disk.id.low + 1))
        case .floor(let number): cluster.floor = SequenceNumber(number)
        case .checkpoint:
            do {
                try cluster.saveCheckpoint()
            } catch {
                return nil
            }
        case .log(let end): cluster.handle(.logFailed(end))
        case .deliver: cluster.run()
        case .step(let count): step(count)
        case .pass(let interval): cluster.pass(interval)
        case .dropAll: cluster.loseQueue()
        case .staleBeat(let epoch): beat(epoch: Epoch(epoch))
        case .set(let name, let value): return set(name, value)
        case .tune(let node, let name, let value):
            tuning[node, default: []].append((name, value))
        case .join(let node, let name, let role): return join(node, name, role)
        case .comeBack(let node): return comeBack(node)
        default: return carryOutOnNode(command)
        }
        return []
    }

    private mutating func carryOutOnNode(_ command: ScriptCommand) -> [String]? {
        switch command {
        case .open(let node, let store):
            guard let id = number(of: node) else { return nil }
            cluster.open(store, on: id)
        case .bridge(let node, let state):
            guard let id = number(of: node) else { return nil }
            cluster.bridge(state, on: id)
        case .follow(let node, let from):
            guard let id = number(of: node) else { return nil }
            cluster.input(.follow(from: SequenceNumber(from)), to: id)
            cluster.pass(cluster.settings.beatInterval)
        case .close(let node, let store):
            guard let id = number(of: node), let name = StoreName(store) else { return nil }
            cluster.input(.close(.store(name)), to: id)
            cluster.run()
        case .dispatch(let node, let target, let texts, let delivers, let isAtomic):
            guard let id = number(of: node) else { return nil }
            cluster.submit(texts, to: target, from: id, isAtomic: isAtomic)
            if delivers { cluster.run() }
        case .grow(let node, let target, let bytes):
            guard let id = number(of: node) else { return nil }
            cluster.grow(target, by: bytes, from: id)
        case .diverge(let node, let store, let text):
            guard let id = number(of: node), let name = StoreName(store) else { return nil }
            cluster.nodes[id]?.replicas[name]?.texts.append(text)
        case .submitAgain(let node): return submitAgain(node)
        case .stepTo(let node):
            guard let id = number(of: node) else { return nil }
            stepTo(id)
        case .dropFeed(let node, let count):
            guard let id = number(of: node) else { return nil }
            cluster.nodes[id]?.feedDrops = count
        case .dropTo(let node):
            guard let id = number(of: node) else { return nil }
            dropTo(id)
        case .reconnect(let node):
            guard let id = number(of: node) else { return nil }
            cluster.reconnect(id)
        case .fallSilent(let node):
            guard let id = number(of: node) else { return nil }
            stopped[node] = cluster.nodes[id]
            cluster.removeNode(id)
        case .leave(let node):
            guard let id = number(of: node) else { return nil }
            cluster.input(.leave, to: id)
            cluster.run()
        case .speak(let node, let epoch):
            guard let id = number(of: node), let connection = cluster.connection(of: id) else {
                return nil
            }
            let progress = Progress(applied: .zero, settled: 0)
            cluster.handle(
                .received(
                    .progress(progress), by: cluster.speaker(connection, epoch: Epoch(epoch)),
                    from: connection))
            cluster.run()
        case .show(let node): return show(node)
        default: return nil
        }
        return []
    }

    private mutating func set(_ name: String, _ value: Int) -> [String]? {
        switch name {
        case "sessionsMax": cluster.settings.sessionsMax = value
        case "storesMax": cluster.settings.storesMax = value
        case "digestBytesMin": cluster.settings.digestBytesMin = UInt64(value)
        case "snapshotBytesMin": cluster.settings.snapshotBytesMin = UInt64(value)
        case "snapshotPartBytesMax": cluster.settings.snapshotPartBytesMax = UInt32(value)
        case "retainedBytesMax": cluster.settings.retention.bytesMax = UInt64(value)
        default: return nil
        }
        return []
    }

    private mutating func join(_ node: String, _ name: String?, _ role: Hello.Role) -> [String]? {
        let tuning = tuning[node] ?? []
        guard tuning.allSatisfy({ ["bufferBytesMax", "deliveryBytesMax"].contains($0.0) }) else {
            return nil
        }
        names.append(node)
        cluster.addNode(names.count, named: name ?? node, role: role) { settings in
            for (name, value) in tuning {
                if name == "bufferBytesMax" { settings.bufferBytesMax = value }
                if name == "deliveryBytesMax" { settings.deliveryBytesMax = value }
            }
        }
        return []
    }

    private mutating func comeBack(_ node: String) -> [String]? {
        guard let id = number(of: node), let process = stopped.removeValue(forKey: node) else {
            return nil
        }
        cluster.nodes[id] = process
        cluster.reconnect(id)
        return []
    }

    /// The waiting appends reach the disk, and nobody is told.
    private mutating func keepAppends() {
        for append in cluster.waitingAppends {
            cluster.disk.append(append)
        }
        cluster.waitingAppends.removeAll()
        cluster.isDiskSlow = false
    }

    private mutating func step(_ count: Int) {
        for _ in 0..<count where !cluster.queue.isEmpty {
            cluster.deliver(cluster.queue.removeFirst())
            cluster.handle(.drained)
        }
    }

    private mutating func stepTo(_ id: Int) {
        while !cluster.queue.isEmpty {
            let next = cluster.queue.removeFirst()
            cluster.deliver(next)
            cluster.handle(.drained)
            if case .toNode(id, _, _) = next { return }
        }
    }

    private mutating func dropTo(_ id: Int) {
        var kept: [Cluster.Step] = []
        for step in cluster.queue {
            if case .toNode(id, _, _) = step {
                cluster.recorded.append(.lost(step))
            } else {
                kept.append(step)
            }
        }
        cluster.queue = kept
    }

    private mutating func submitAgain(_ node: String) -> [String]? {
        guard let id = number(of: node),
            let submit = cluster.nodes[id]?.sent.last(where: {
                if case .submit = $0 { true } else { false }
            })
        else { return nil }
        guard let connection = cluster.connection(of: id) else { return nil }
        cluster.queue.append(
            .toSequencer(id, Frame.encode(submit, by: cluster.speaker(connection))))
        cluster.run()
        return []
    }

    private mutating func beat(epoch: Epoch) {
        let beat = Beat(log: cluster.disk.id, last: cluster.disk.last, floor: SequenceNumber(1))
        cluster.queue.append(.feed(Frame.encode(beat, epoch: epoch)))
        cluster.run()
    }

    private func show(_ node: String) -> [String]? {
        guard let id = number(of: node), let shown = cluster.nodes[id] else { return nil }
        let stores = shown.replicas.sorted { $0.key < $1.key }.map { name, replica in
            let shown = replica.texts.map { $0.count > 40 ? "\($0.count) bytes" : $0 }
            let texts = shown.isEmpty ? "nothing" : shown.joined(separator: ", ")
            let place = replica.isAttached ? "at \(replica.position)" : "and catches up"
            return Narration.line(node, "has \(name): \(texts), \(place)")
        }
        let isBridged = shown.machine.hosting.subjects.contains { subject in
            if case .state = subject { true } else { false }
        }
        let bridged = (isBridged ? shown.bridgedTexts : []).map {
            Narration.line(node, "heard \($0)")
        }
        let all = stores + bridged
        return all.isEmpty ? [Narration.line(node, "has nothing")] : all
    }
}
