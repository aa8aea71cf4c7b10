import ConfluxVocabulary

@testable import ConfluxProtocol

/// Connections beside the nodes of a cluster that send what a test wants: faulty or hostile messages.
struct RawPeers {
    var cluster: Cluster
    /// The principals of connections. A connection that is not in here belongs to the default one.
    var principals: [UInt64: Principal] = [:]

    /// Starts a sequencer with these settings.
    init(_ adjust: (inout SequencerSettings) -> Void = { _ in }) {
        cluster = Cluster()
        adjust(&cluster.settings)
        cluster.startSequencer()
    }

    /// Sends a message for `speaker`, or for the connection's session if none is given, and runs everything
    /// that follows from it.
    mutating func say(
        _ message: NodeMessage, on connection: UInt64, by speaker: Speaker? = nil
    ) {
        tell(message, on: connection, by: speaker)
        cluster.run()
    }

    /// Sends a message, and runs nothing.
    mutating func tell(
        _ message: NodeMessage, on connection: UInt64, by speaker: Speaker? = nil
    ) {
        let from = ConnectionID(rawValue: 1_000 + connection)
        cluster.handle(
            .received(
                message, by: speaker ?? cluster.speaker(from), from: from,
                as: principals[connection] ?? .anybody))
    }

    /// Says hello, with the connection's number or another one as its nonce.
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

    /// Opens a store with an initial state of this size.
    mutating func open(_ store: String, request: UInt64, bytes: Int = 2, on connection: UInt64) {
        guard let name = StoreName(store) else { return }
        let initial = EncodedState(
            coding: .json, bytes: [UInt8](repeating: 0x20, count: bytes)[...])
        say(
            .open(
                Open(
                    request: request, subject: .store(name), versions: SupportedVersions(1),
                    events: [],
                    initial: initial)), on: connection)
    }

    /// A batch of one action of this size.
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

    /// The messages that a connection got since the last call.
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
    /// The codes of all byes.
    var byes: [ByeCode] {
        compactMap { if case .bye(let bye) = $0 { bye.code } else { nil } }
    }

    /// The outcomes of all opens: nil for success.
    var opens: [RejectionCode?] {
        compactMap { message -> RejectionCode?? in
            guard case .opened(let opened) = message else { return nil }
            guard case .failed(let code, _) = opened.outcome else { return .some(nil) }
            return code
        }
    }

    /// The counters from which batches were discarded, since there was no room.
    var full: [UInt64] {
        compactMap {
            guard case .expected(let expected) = $0, expected.reason == .full else { return nil }
            return expected.counter
        }
    }

    /// The number of welcomes.
    var welcomes: Int { count { if case .welcome = $0 { true } else { false } } }

    /// The failures of all answers.
    var failures: [QuestionFailure] {
        compactMap {
            guard case .answer(let answer) = $0, case .failed(let failure, _) = answer.body else {
                return nil
            }
            return failure
        }
    }
}
