import ConfluxVocabulary

extension Question: WireField {
    static let bytesMin = 8 + 8 + 8 + 1

    init(reading reader: inout FrameReader) throws(WireError) {
        let number = try reader.fixed(UInt64.self, "a question's number")
        let patience = try reader.duration("a question's patience")
        let acknowledged = try reader.fixed(UInt64.self, "a delivery tag")
        let at = reader.offset
        var body: Body
        switch try reader.fixed(UInt8.self, "a question") {
        case 1:
            body = .status
        case 2:
            let store = try StoreName(reading: &reader)
            let node = try reader.optional(Name.self, "a node's name")
            body = .observe(store, node: node, after: try reader.sequence("a sequence number"))
        case 3:
            let sequence = try reader.sequence("a sequence number")
            body = .applied(sequence, try Target(reading: &reader))
        case 4:
            body = .alive
        case 5:
            body = .reload
        case 6:
            body = .sequencers
        case 7:
            body = .handOver(
                to: try reader.flag("whether an address follows")
                    ? try reader.text("a sequencer's address") : nil)
        case 8:
            body = .start(try StoreName(reading: &reader))
        default:
            throw .malformed(at: at, expected: "a question")
        }
        if body == .status, let state = try reader.readShapesAsked() { body = .shapes(state) }
        self.init(number: number, patience: patience, acknowledged: acknowledged, body: body)
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(number)
        writer.duration(patience)
        writer.fixed(acknowledged)
        switch body {
        case .status:
            writer.fixed(UInt8(1))
        case .shapes(let state):
            writer.fixed(UInt8(1))
            writer.shapes(askedOf: state)
        case .observe(let store, let node, let after):
            writer.fixed(UInt8(2))
            store.write(to: &writer)
            writer.optional(node)
            writer.number(after)
        case .applied(let sequence, let target):
            writer.fixed(UInt8(3))
            writer.number(sequence)
            target.write(to: &writer)
        case .alive:
            writer.fixed(UInt8(4))
        case .reload:
            writer.fixed(UInt8(5))
        case .sequencers:
            writer.fixed(UInt8(6))
        case .handOver(let address):
            writer.fixed(UInt8(7))
            writer.flag(address != nil)
            if let address { writer.text(address) }
        case .start(let store):
            writer.fixed(UInt8(8))
            store.write(to: &writer)
        }
    }
}

extension Answer: WireField {
    static let bytesMin = 8 + 1 + 1 + 8 + 1

    init(reading reader: inout FrameReader) throws(WireError) {
        let number = try reader.fixed(UInt64.self, "a question's number")
        let isLast = try reader.flag("whether it is the last answer")
        let node = try reader.optional(Name.self, "a node's name")
        let deliveryTag = try reader.fixed(UInt64.self, "a delivery tag")
        let at = reader.offset
        let body: Body
        switch try reader.fixed(UInt8.self, "an answer") {
        case 1:
            var status = try SequencerStatus(reading: &reader)
            status.shapes = try reader.readShapes()
            body = .status(status)
        case 2:
            let store = try StoreName(reading: &reader)
            let sequence = try reader.sequence("a sequence number")
            body = .state(store, sequence, try reader.block("a state"))
        case 3:
            body = .applied
        case 4:
            body = .refused(message: try reader.text("a refusal's message"))
        case 5:
            let failure = try reader.code(QuestionFailure.self, "a failure's code")
            body = .failed(failure, message: try reader.text("a failure's message"))
        case 6:
            body = .alive
        case 7:
            let sequence = try reader.sequence("the entry at which a store stopped")
            body = .stopped(at: sequence, message: try reader.text("why a store stopped"))
        case 8:
            body = .concernedNobody
        case 9:
            body = .reloaded(count: try reader.fixed(UInt32.self, "a count of keys"))
        case 10:
            body = .sequencers(try reader.list(SequencerPlace.self, "the sequencers"))
        case 11:
            body = .handingOver(to: try reader.text("a sequencer's address"))
        case 12:
            let store = try StoreName(reading: &reader)
            body = .start(store, try Opened.Outcome(reading: &reader))
        default:
            throw .malformed(at: at, expected: "an answer")
        }
        self.init(
            number: number, isLast: isLast, node: node, deliveryTag: deliveryTag, body: body)
    }

    func write(to writer: inout FrameWriter) {
        writer.fixed(number)
        writer.flag(isLast)
        writer.optional(node)
        writer.fixed(deliveryTag)
        switch body {
        case .status(let status):
            writer.fixed(UInt8(1))
            status.write(to: &writer)
            writer.shapes(status.shapes)
        case .state(let store, let sequence, let state):
            writer.fixed(UInt8(2))
            store.write(to: &writer)
            writer.number(sequence)
            writer.block(state)
        case .applied:
            writer.fixed(UInt8(3))
        case .refused(let message):
            writer.fixed(UInt8(4))
            writer.text(message)
        case .failed(let failure, let message):
            writer.fixed(UInt8(5))
            writer.code(failure)
            writer.text(message)
        case .alive:
            writer.fixed(UInt8(6))
        case .stopped(let sequence, let message):
            writer.fixed(UInt8(7))
            writer.number(sequence)
            writer.text(message)
        case .concernedNobody:
            writer.fixed(UInt8(8))
        case .reloaded(let count):
            writer.fixed(UInt8(9))
            writer.fixed(count)
        case .sequencers(let places):
            writer.fixed(UInt8(10))
            writer.list(places)
        case .handingOver(let address):
            writer.fixed(UInt8(11))
            writer.text(address)
        case .start(let store, let outcome):
            writer.fixed(UInt8(12))
            store.write(to: &writer)
            outcome.write(to: &writer)
        }
    }
}

extension SequencerStatus: WireField {
    static let bytesMin = 16 + 4 * 8 + 2 * 4

    init(reading reader: inout FrameReader) throws(WireError) {
        let log = try reader.identifier("a log's id")
        let epoch = try reader.epoch("an epoch")
        let last = try reader.sequence("the last number")
        let floor = try reader.sequence("the floor")
        let checkpoint = try reader.sequence("the newest checkpoint")
        let sessions = try reader.list(SessionStatus.self, "the sessions")
        self.init(
            log: log, epoch: epoch, last: last, floor: floor, checkpoint: checkpoint,
            sessions: sessions,
            stores: try reader.list(StoreStatus.self, "the stores"))
    }

    func write(to writer: inout FrameWriter) {
        writer.identifier(log)
        writer.number(epoch)
        writer.number(last)
        writer.number(floor)
        writer.number(checkpoint)
        writer.list(sessions)
        writer.list(stores)
    }
}

extension SessionStatus: WireField {
    static let bytesMin = 8 + 1 + 1 + 1 + 8 + 8 + 4 + 4

    init(reading reader: inout FrameReader) throws(WireError) {
        let incarnation = try reader.incarnation("an incarnation")
        let name = try reader.optional(Name.self, "a node's name")
        let owner = try reader.optional(Name.self, "a key's name")
        let isLive = try reader.flag("whether the node is present")
        let applied = try reader.sequence("the applied number")
        let lastCounter = try reader.number("the last counter")
        let hosted = try reader.list(StoreName.self, "the hosted stores")
        self.init(
            incarnation: incarnation, name: name, owner: owner, isLive: isLive,
            applied: applied, lastCounter: lastCounter, hosted: hosted,
            bridged: try reader.list(Name.self, "the bridged states"))
    }

    func write(to writer: inout FrameWriter) {
        writer.number(incarnation)
        writer.optional(name)
        writer.optional(owner)
        writer.flag(isLive)
        writer.number(applied)
        writer.number(lastCounter)
        writer.list(hosted)
        writer.list(bridged)
    }
}

extension StoreStatus: WireField {
    static let bytesMin = StoreName.bytesMin + 8 + 4 + 4 + 8 + 1 + 1 + 4

    init(reading reader: inout FrameReader) throws(WireError) {
        let store = try StoreName(reading: &reader)
        let life = try reader.sequence("a life")
        let schemaVersion = try reader.fixed(UInt32.self, "a schema version")
        let hosts = try reader.fixed(UInt32.self, "how many hosts")
        let snapshot = try reader.sequence("a snapshot's number")
        let isFrozen = try reader.flag("whether the store is frozen")
        let divergence = try reader.optional(DivergenceStatus.self, "a divergence")
        self.init(
            store: store, life: life, schemaVersion: schemaVersion, hosts: hosts,
            snapshot: snapshot, isFrozen: isFrozen, divergence: divergence,
            stopped: try reader.list(StoppedReplica.self, "the stopped replicas"))
    }

    func write(to writer: inout FrameWriter) {
        store.write(to: &writer)
        writer.number(life)
        writer.fixed(schemaVersion)
        writer.fixed(hosts)
        writer.number(snapshot)
        writer.flag(isFrozen)
        writer.optional(divergence)
        writer.list(stopped)
    }
}

extension StoppedReplica: WireField {
    static let bytesMin = 8 + 8

    init(reading reader: inout FrameReader) throws(WireError) {
        let node = try reader.incarnation("an incarnation")
        self.init(node: node, sequence: try reader.sequence("the entry before which it stopped"))
    }

    func write(to writer: inout FrameWriter) {
        writer.number(node)
        writer.number(sequence)
    }
}

extension DivergenceStatus: WireField {
    static let bytesMin = 8 + 8 + 4 + 1 + 1

    init(reading reader: inout FrameReader) throws(WireError) {
        let lastEqual = try reader.sequence("the last equal digest point")
        let firstUnequal = try reader.sequence("the first unequal digest point")
        let count = try reader.count(
            limit: reader.limits.elementsPerListMax, elementBytesMin: 8, "the nodes")
        var nodes: [Incarnation] = []
        for _ in 0..<count { nodes.append(try reader.incarnation("an incarnation")) }
        let isMajority = try reader.flag("whether there is a majority")
        let hasPath = try reader.flag("whether there is a key path")
        self.init(
            lastEqual: lastEqual, firstUnequal: firstUnequal, nodes: nodes,
            isMajority: isMajority, path: hasPath ? try reader.text("a key path") : nil)
    }

    func write(to writer: inout FrameWriter) {
        writer.number(lastEqual)
        writer.number(firstUnequal)
        writer.fixed(UInt32(nodes.count))
        for node in nodes { writer.number(node) }
        writer.flag(isMajority)
        writer.flag(path != nil)
        if let path { writer.text(path) }
    }
}
