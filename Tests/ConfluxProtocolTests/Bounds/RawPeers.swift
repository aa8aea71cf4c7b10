import ConfluxVocabulary

@testable import ConfluxProtocol

/// Connections that say what a test wants, beside the nodes of a cluster: mistaken or hostile ones.
struct RawPeers {
    var cluster: Cluster
    /// Who speaks on a connection: anybody, unless it is here.
    var principals: [UInt64: Principal] = [:]

    /// Starts a sequencer with these settings.
    init(_ adjust: (inout SequencerSettings) -> Void = { _ in }) {
        cluster = Cluster()
        adjust(&cluster.settings)
        cluster.startSequencer()
    }

    /// Says something for `speaker` (for the session that the connection has, if nobody is named),
    /// and lets everything happen that comes of it.
    mutating func say(
        _ message: NodeMessage, on connection: UInt64, by speaker: Speaker? = nil
    ) {
        tell(message, on: connection, by: speaker)
        cluster.run()
    }

    /// Says something, with nothing in between that and what is said next.
    mutating func tell(
        _ message: NodeMessage, on connection: UInt64, by speaker: Speaker? = nil
    ) {
        let from = ConnectionID(rawValue: 1_000 + connection)
        cluster.handle(
            .received(
                message, by: speaker ?? cluster.speaker(from), from: from,
                as: principals[connection] ?? .anybody))
    }

    /// Says hello with a nonce that is the connection's number, or another one.
    mutating func join(
        _ connection: UInt64, named name: String? = nil, role: Hello.Role = .member,
        request: UInt64 = 1, as other: UInt64? = nil
    ) {
        let nonce = Identifier(high: 77, low: other ?? connection)
        say(
            .hello(
                Hello(
                    request: request, nonce: nonce, name: name.flatMap { Name($0) }, role: role)),
            on: connection)
    }

    /// Opens a store with a first state of so many bytes.
    mutating func open(_ store: String, request: UInt64, bytes: Int = 2, on connection: UInt64) {
        guard let name = StoreName(store) else { return }
        let initial = EncodedState(
            coding: .json, bytes: [UInt8](repeating: 0x20, count: bytes)[...])
        say(
            .open(
                Open(
                    request: request, subject: .store(name), schemaVersion: 1, events: [],
                    initial: initial)), on: connection)
    }

    /// A batch of one action of so many bytes.
    func batch(
        _ counter: UInt64, to target: String = "list/*", bytes: Int = 1, settled: UInt64 = 0
    ) -> NodeMessage? {
        guard let target = Target(target) else { return nil }
        var builder = BatchBuilder()
        builder.append(
            target: BatchTarget(target: target, schemaVersion: 1, coding: .json),
            payload: [UInt8](repeating: 0x78, count: bytes))
        return .submit(builder.finish(firstCounter: counter, settled: settled))
    }

    /// What a connection was told since the last look.
    mutating func heard(on connection: UInt64) -> [SequencerMessage] {
        let told = cluster.published.compactMap { effect -> SequencerMessage? in
            guard case .send(let message, let to) = effect, to.rawValue == 1_000 + connection else {
                return nil
            }
            return message
        }
        cluster.published.removeAll {
            if case .send(_, let to) = $0 { to.rawValue == 1_000 + connection } else { false }
        }
        return told
    }
}

extension [SequencerMessage] {
    /// The codes of the byes among them.
    var byes: [ByeCode] {
        compactMap { if case .bye(let bye) = $0 { bye.code } else { nil } }
    }

    /// How the opens among them ended: nil for a good end.
    var opens: [RejectionCode?] {
        compactMap { message -> RejectionCode?? in
            guard case .opened(let opened) = message else { return nil }
            guard case .failed(let code, _) = opened.outcome else { return .some(nil) }
            return code
        }
    }

    /// The counters at which batches were discarded for want of room.
    var full: [UInt64] {
        compactMap {
            guard case .expected(let expected) = $0, expected.reason == .full else { return nil }
            return expected.counter
        }
    }

    /// How many welcomes there are.
    var welcomes: Int { count { if case .welcome = $0 { true } else { false } } }

    /// The failures among the answers.
    var failures: [QuestionFailure] {
        compactMap {
            guard case .answer(let answer) = $0, case .failed(let failure, _) = answer.body else {
                return nil
            }
            return failure
        }
    }
}
