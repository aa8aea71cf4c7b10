import ConfluxVocabulary

@testable import ConfluxProtocol

/// Messages of a node, and parts of both sides' messages. They may break the ranges of the grammar, so
/// they are encoded and decoded before use, like those of a peer.
extension Dice {
    mutating func nodeMessage(_ known: Surroundings) -> NodeMessage {
        switch below(12) {
        case 0, 1: .hello(hello(known))
        case 2, 3:
            .open(
                Open(
                    request: request(known), subject: subject(), versions: versions(),
                    events: list(upTo: 2) { $0.name() }, initial: state()))
        case 4: .close(Close(subject: subject()))
        case 5, 6: .submit(batch(known))
        case 7:
            .fetch(
                Fetch(
                    request: request(known), from: sequence(known), limitBytes: UInt32(byte())))
        case 8:
            .progress(
                Progress(
                    applied: sequence(known), settled: number(near: known.counters),
                    stopped: list(upTo: 2) {
                        let place = $0.place(known)
                        return StoppedStore(
                            store: place.store, life: place.life, sequence: place.sequence)
                    }))
        case 9: .question(question(known))
        case 10: .answer(answer(known))
        default:
            switch below(11) {
            case 0: .bye(bye())
            case 1: .barrier(Barrier(request: request(known)))
            case 2: .load(load(known))
            case 3: .digest(report(known))
            case 4: .snapshot(chunk(known))
            case 5:
                .skip(
                    Skip(
                        request: request(known),
                        sequence: SequenceNumber(max(sequence(known).rawValue, 1)),
                        target: target()))
            case 6:
                .upgrade(
                    Upgrade(
                        request: request(known), store: storeName(), life: place(known).life,
                        schemaVersion: flag() ? 0 : version(), mayReplay: flag()))
            case 7:
                .migrated(
                    Migrated(
                        place: place(known), schemaVersion: version(),
                        outcome: flag() ? .failed("it throws") : .migrated(digest())))
            case 8: .leaving(Leaving(request: request(known)))
            case 9:
                .freeze(
                    Freeze(
                        request: request(known), store: storeName(),
                        life: place(known).life, isFrozen: flag()))
            default:
                .drop(
                    Drop(
                        request: request(known), store: storeName(),
                        life: SequenceNumber(max(life(known).rawValue, 1))))
            }
        }
    }

    mutating func hello(_ known: Surroundings) -> Hello {
        Hello(
            request: UInt64(1 + below(4)), nonce: nonce(), name: optional { $0.name() },
            role: below(5) == 0 ? .observer : .member,
            process: below(4) == 0 ? nonce() : nil,
            session: optional {
                SessionToken(log: $0.log(known), incarnation: $0.incarnation(known))
            },
            history: optional {
                HistoryMark(
                    log: $0.log(known), sequence: $0.sequence(known), epoch: $0.epoch(known),
                    claim: $0.claim(known))
            },
            hosted: list(upTo: 3) {
                HostedStore(
                    store: $0.storeName(), life: $0.life(known), versions: $0.versions())
            },
            bridged: list(upTo: 3) {
                StateBridge(state: $0.name(), schemaVersion: $0.version())
            })
    }

    mutating func versions() -> SupportedVersions {
        SupportedVersions(version(), oldest: version(), policy: one(of: UpgradePolicy.self))
    }

    mutating func batch(_ known: Surroundings) -> Batch {
        var builder = BatchBuilder()
        let rows = (0...below(4)).map { _ in
            BatchTarget(
                target: target(), life: below(6) == 0 ? life(known) : .zero,
                schemaVersion: version(), coding: one(of: PayloadCoding.self))
        }
        for _ in 0...below(10) {
            guard let row = element(of: rows) else { continue }
            let size = below(12) == 0 ? 100 : below(5)
            builder.append(target: row, payload: [UInt8](repeating: 0x78, count: size))
        }
        let first = counter(known)
        // A batch begins above the settled counters. Any other batch is refused.
        let settled = below(16) == 0 ? counter(known) : first - min(first, UInt64(1 + below(3)))
        if below(8) == 0 {
            return .void(firstCounter: first, count: UInt32(1 + below(6)), settled: settled)
        }
        return builder.finish(firstCounter: first, settled: settled, isAtomic: below(5) == 0)
    }

    mutating func question(_ known: Surroundings) -> Question {
        let body: Question.Body =
            switch below(7) {
            case 0: .status
            case 1: .alive
            case 6: .reload
            case 2, 3:
                .observe(storeName(), node: optional { $0.name() }, after: sequence(known))
            default: .applied(sequence(known), target())
            }
        return Question(number: request(known), patience: duration(), body: body)
    }

    mutating func answer(_ known: Surroundings) -> Answer {
        let body: Answer.Body =
            switch below(9) {
            case 8: .reloaded(count: UInt32(below(9)))
            case 0: .state(storeName(), sequence(known), bytes(upTo: 8)[...])
            case 1: .applied
            case 2: .refused(message: text())
            case 3: .failed(one(of: QuestionFailure.self), message: text())
            case 4: .stopped(at: sequence(known), message: text())
            case 5: .concernedNobody
            default: .alive
            }
        return Answer(
            number: request(known), isLast: flag(), node: optional { $0.name() }, body: body)
    }

    mutating func bye() -> Bye {
        Bye(code: one(of: ByeCode.self), message: text(), answering: UInt64(below(4)))
    }
}
