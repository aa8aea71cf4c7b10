import ConfluxVocabulary

extension Question: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            number: try coder.field(value?.number, "a question's number"),
            patience: try coder.field(value?.patience, "a question's patience"),
            acknowledged: try coder.field(value?.acknowledged, "a delivery tag"),
            body: try coder.field(value?.body))
        let asked: Name? = if case .shapes(let state)? = value?.body { state } else { nil }
        let shapes = try coder.extension(Frame.shapesTag, asked, "a state")
        if body == .status, let shapes { body = .shapes(shapes) }
    }
}

extension Question.Body: WireField {
    init(reading reader: inout FrameReader, _: String) throws(WireError) {
        let at = reader.offset
        self =
            switch try reader.fixed(UInt8.self, "a question") {
            case 1: .status
            case 2:
                .observe(
                    try reader.read(), node: try reader.read("a node's name"),
                    after: try reader.read("a sequence number"))
            case 3: .applied(try reader.read("a sequence number"), try reader.read())
            case 4: .alive
            case 5: .reload
            case 6: .sequencers
            case 7: .handOver(to: try reader.read("a sequencer's address"))
            case 8: .start(try reader.read())
            case 9: .timers(behind: try reader.read("the number of a timer"))
            case 10:
                .lease(
                    try reader.read(),
                    untilHeld: try reader.read("whether to wait until the lease is held"))
            case 11: .leases(behind: try reader.read("the number of a claim"))
            default: throw .malformed(at: at, expected: "a question")
            }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .status, .shapes: writer.alternative(1)
        case .observe(let store, let node, let after): writer.alternative(2, store, node, after)
        case .applied(let sequence, let target): writer.alternative(3, sequence, target)
        case .alive: writer.alternative(4)
        case .reload: writer.alternative(5)
        case .sequencers: writer.alternative(6)
        case .handOver(let address): writer.alternative(7, address)
        case .start(let store): writer.alternative(8, store)
        case .timers(let number): writer.alternative(9, number)
        case .lease(let claim, let untilHeld): writer.alternative(10, claim, untilHeld)
        case .leases(let number): writer.alternative(11, number)
        }
    }
}

extension Answer: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            number: try coder.field(value?.number, "a question's number"),
            isLast: try coder.field(value?.isLast, "whether it is the last answer"),
            node: try coder.optional(value?.node, "a node's name"),
            deliveryTag: try coder.field(value?.deliveryTag, "a delivery tag"),
            body: try coder.field(value?.body))
        earlier = try coder.extension(Frame.earlierTag, value?.earlier)
    }
}

extension EarlierStart: WireRecord {
    init<Coder: FieldCoder>(_ value: Self?, _ coder: inout Coder) throws(Coder.Failure) {
        self.init(
            snapshot: try coder.optional(value?.snapshot, "an earlier snapshot"),
            skipped: try coder.field(value?.skipped, "what is skipped"))
    }
}

extension Answer.Body: WireField {
    init(reading reader: inout FrameReader, _: String) throws(WireError) {
        let at = reader.offset
        self =
            switch try reader.fixed(UInt8.self, "an answer") {
            case 1: .status(try reader.read())
            case 2:
                .state(
                    try reader.read(), try reader.read("a sequence number"),
                    try reader.read("a state"))
            case 3: .applied
            case 4: .refused(message: try reader.read("a refusal's message"))
            case 5:
                .failed(
                    try reader.read("a failure's code"),
                    message: try reader.read("a failure's message"))
            case 6: .alive
            case 7:
                .stopped(
                    at: try reader.read("the entry at which a store stopped"),
                    message: try reader.read("why a store stopped"))
            case 8: .concernedNobody
            case 9: .reloaded(count: try reader.read("a count of keys"))
            case 10: .sequencers(try reader.read("the sequencers"))
            case 11: .handingOver(to: try reader.read("a sequencer's address"))
            case 12: .start(try reader.read(), try reader.read())
            case 13: .timers(try reader.read("the timers"))
            case 14: .lease(try reader.read())
            case 15: .leases(try reader.read("the claims"))
            default: throw .malformed(at: at, expected: "an answer")
            }
    }

    func write(to writer: inout FrameWriter) {
        switch self {
        case .status(let status): writer.alternative(1, status)
        case .state(let store, let sequence, let state):
            writer.alternative(2, store, sequence, state)
        case .applied: writer.alternative(3)
        case .refused(let message): writer.alternative(4, message)
        case .failed(let failure, let message): writer.alternative(5, failure, message)
        case .alive: writer.alternative(6)
        case .stopped(let sequence, let message): writer.alternative(7, sequence, message)
        case .concernedNobody: writer.alternative(8)
        case .reloaded(let count): writer.alternative(9, count)
        case .sequencers(let places): writer.alternative(10, places)
        case .handingOver(let address): writer.alternative(11, address)
        case .start(let store, let outcome): writer.alternative(12, store, outcome)
        case .timers(let timers): writer.alternative(13, timers)
        case .lease(let state): writer.alternative(14, state)
        case .leases(let claims): writer.alternative(15, claims)
        }
    }
}
