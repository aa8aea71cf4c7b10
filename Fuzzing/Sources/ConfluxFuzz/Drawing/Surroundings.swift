import ConfluxVocabulary

@testable import ConfluxProtocol

/// What a drawn value may refer to, so that it often makes sense.
struct Surroundings {
    var log = LogID.none
    var epoch = Epoch.none
    var claim = Nonce.none
    var last = SequenceNumber.zero
    /// The known sessions.
    var incarnations: [Incarnation] = []
    /// The known lives of stores.
    var lives: [SequenceNumber] = []
    /// The counters with which batches of the present session may begin.
    var counters: [UInt64] = []
    /// The open questions and fetches.
    var requests: [UInt64] = []
}

/// Values of the vocabulary.
extension Dice {
    private static let names = ["list", "a", "b", "room", "x1"].compactMap { Name($0) }

    mutating func name() -> Name { element(of: Self.names) ?? .shared }

    mutating func storeName() -> StoreName {
        StoreName(state: name(), instance: flag() ? .shared : name())
    }

    /// One of a few nonces, so that nodes are confused with each other.
    mutating func nonce() -> Nonce { Identifier(high: 42, low: UInt64(below(6))) }

    mutating func log(_ known: Surroundings) -> LogID {
        below(8) == 0 ? Identifier(high: 7, low: UInt64(below(3))) : known.log
    }

    mutating func claim(_ known: Surroundings) -> Nonce {
        switch below(4) {
        case 0: .none
        case 1: nonce()
        default: known.claim
        }
    }

    mutating func epoch(_ known: Surroundings) -> Epoch {
        below(4) == 0 ? Epoch(number(near: [known.epoch.rawValue])) : known.epoch
    }

    mutating func sequence(_ known: Surroundings) -> SequenceNumber {
        SequenceNumber(number(near: [known.last.rawValue] + known.lives.map(\.rawValue)))
    }

    mutating func life(_ known: Surroundings) -> SequenceNumber {
        SequenceNumber(number(near: known.lives.map(\.rawValue) + [0]))
    }

    mutating func incarnation(_ known: Surroundings) -> Incarnation {
        Incarnation(number(near: known.incarnations.map(\.rawValue)))
    }

    mutating func counter(_ known: Surroundings) -> UInt64 {
        max(number(near: known.counters), 1)
    }

    mutating func request(_ known: Surroundings) -> UInt64 { number(near: known.requests) }

    mutating func version() -> UInt32 { below(4) == 0 ? UInt32(below(4)) : 1 }

    mutating func duration() -> Duration {
        switch below(4) {
        case 0: .zero
        case 1: .nanoseconds(Int64(number(near: [])))
        default: .milliseconds(below(256) * 20)
        }
    }

    mutating func text() -> String {
        String(decoding: bytes(upTo: 12), as: UTF8.self)
    }

    mutating func target() -> Target {
        switch below(8) {
        case 0: .event(name())
        case 1, 2: .state(name())
        default: .store(storeName())
        }
    }

    mutating func state() -> EncodedState {
        let size = below(8) == 0 ? 150 : below(8)
        return EncodedState(
            coding: one(of: PayloadCoding.self), bytes: [UInt8](repeating: 0x5B, count: size)[...])
    }

    mutating func subject() -> HostingSubject {
        flag() ? .store(storeName()) : .state(name())
    }
}
