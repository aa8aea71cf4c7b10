import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// A node whose stores are lists of the texts that were applied to them.
struct SimulatedNode {
    struct Replica {
        var life: SequenceNumber
        var position: SequenceNumber
        /// Whether it gets what it catches up with.
        var isBegun = false
        var isAttached = false
        var texts: [String] = []
        /// The entries that have no effect on it, and those of them since the last digest point.
        var skipped: Set<SequenceNumber> = []
        var refusals = DigestHasher()
        var isFrozen = false
        /// The entry that it did not apply: it goes no further.
        var stoppedAt: SequenceNumber?
        /// What it was at the last two digest points.
        var encodings: [(point: SequenceNumber, bytes: [UInt8])] = []
    }

    let id: Int
    var machine: ReplicaMachine
    var isSubscribed = false
    /// How many messages of the feed are lost from now on.
    var feedDrops = 0
    var replicas: [StoreName: Replica] = [:]
    /// The texts of a bridged state, with their numbers.
    var bridgedTexts: [String] = []
    var outcomes: [UInt64: ActionOutcome.Fate] = [:]
    var opened: [UInt64: OpenOutcome] = [:]
    var reached: [UInt64: ReachOutcome] = [:]
    var asked: [Question] = []
    var answers: [Answer] = []
    var events: [ReplicaEvent] = []
    var end: ReplicaEnd?
    var sent: [NodeMessage] = []
    /// Whether it never says that it has applied anything: it answers and does not advance.
    var isStuck = false
    /// The schema version of its states. A newer one has "migrated" in its list.
    var schemaVersion: UInt32 = 1
    /// The texts at which its replicas stop.
    var poisons: Set<String> = []
    /// What it does when it is asked for a part of a state.
    var giving = Giving.whatItHas
    /// Whether its votes wait, and those that do.
    var isVotingLate = false
    var heldVotes: [Vote] = []
    /// How often its history was lost.
    var resets: UInt64 = 0
    /// What it was told to compare its states with.
    var compared: [(divergence: Divergence, bytes: Bytes?)] = []

    enum Giving {
        case whatItHas, nothing, silence, lies
    }
    /// The stores that the node wants to host, and what each of its actions concerns.
    var wanted: Set<StoreName> = []
    private var targets: [UInt64: Target] = [:]
    private var inputs: [ReplicaInput] = []
    private var nextRequest: UInt64 = 1

    init(id: Int, settings: ReplicaSettings, key: String? = nil) {
        self.id = id
        let own = Identifier(high: 42, low: UInt64(id))
        let key = key.flatMap { SessionKey($0) }
        machine = ReplicaMachine(
            settings: settings, nonce: key?.nonce ?? own, process: key == nil ? nil : own)
    }

    func texts(of store: String) -> [String] {
        StoreName(store).flatMap { replicas[$0]?.texts } ?? []
    }

    mutating func open(_ store: String) {
        guard let name = StoreName(store) else { return }
        let initial = EncodedState(coding: .json, bytes: Array("[]".utf8)[...])
        inputs.append(
            .open(
                Open(
                    request: nextRequest, subject: .store(name), schemaVersion: schemaVersion,
                    events: [], initial: initial)))
        nextRequest += 1
        wanted.insert(name)
    }

    /// Ends the life of a store that it hosts.
    ///
    /// - Returns: The request.
    mutating func drop(_ store: String) -> UInt64? {
        guard let name = StoreName(store), let life = replicas[name]?.life else { return nil }
        let request = nextRequest
        nextRequest += 1
        inputs.append(.drop(Drop(request: request, store: name, life: life)))
        return request
    }

    /// - Returns: The request.
    mutating func freeze(_ store: String, _ isFrozen: Bool) -> UInt64? {
        guard let name = StoreName(store), let life = replicas[name]?.life else { return nil }
        let request = nextRequest
        nextRequest += 1
        inputs.append(
            .freeze(Freeze(request: request, store: name, life: life, isFrozen: isFrozen)))
        return request
    }

    /// - Returns: The request.
    mutating func skip(_ sequence: SequenceNumber, _ target: Target) -> UInt64 {
        let request = nextRequest
        nextRequest += 1
        inputs.append(.skip(Skip(request: request, sequence: sequence, target: target)))
        return request
    }

    mutating func bridge(_ state: String) {
        guard let name = Name(state) else { return }
        inputs.append(
            .open(
                Open(
                    request: nextRequest, subject: .state(name), schemaVersion: 1, events: [],
                    initial: .none)))
        nextRequest += 1
    }

    mutating func dispatch(
        _ texts: [String], to target: String, life: SequenceNumber = .zero, isAtomic: Bool
    ) {
        var builder = BatchBuilder()
        for text in texts {
            // `target: text` in a text overrides the target of the batch.
            let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
            let place = parts.count == 2 ? parts[0] : target
            guard let parsed = Target(place) else { continue }
            targets[machine.nextCounter + UInt64(builder.count)] = parsed
            builder.append(
                target: BatchTarget(
                    target: parsed, life: life, schemaVersion: 1, coding: .json),
                payload: Array((parts.last ?? "").utf8))
        }
        inputs.append(.dispatched(builder, isAtomic: isAtomic))
    }

    mutating func takeInput() -> ReplicaInput? {
        inputs.isEmpty ? nil : inputs.removeFirst()
    }

    /// - Returns: The frames that the node sends, and all that its machine wanted done.
    mutating func handle(
        _ input: ReplicaInput, at now: Moment
    ) -> (frames: [[UInt8]], effects: [ReplicaEffect]) {
        var frames: [[UInt8]] = []
        var effects: [ReplicaEffect] = []
        machine.handle(input, at: now, into: &effects)
        var index = 0
        while index < effects.count {
            let effect = effects[index]
            index += 1
            switch effect {
            case .send(let message):
                sent.append(message)
                frames.append(Frame.encode(message, epoch: machine.epoch))
            case .subscribe: isSubscribed = true
            case .deliver(let delivery):
                for told in perform(delivery) where !isStuck {
                    machine.handle(told, at: now, into: &effects)
                }
            case .give(let request):
                if let chunk = give(request) {
                    machine.handle(.given(chunk), at: now, into: &effects)
                }
            case .asked(let question): asked.append(question)
            case .answered(let answer): answers.append(answer)
            case .event(let event):
                events.append(event)
                // Another session: counters begin with 1.
                if case .joined = event {
                    outcomes.removeAll()
                    targets.removeAll()
                }
            case .end(let end): self.end = end
            }
        }
        return (frames, effects)
    }

    /// - Returns: What the machine is told then.
    private mutating func perform(_ delivery: Delivery) -> [ReplicaInput] {
        switch delivery {
        case .commit(let commit, let bytes):
            return [.applied(commit.last, bytes: bytes)] + apply(commit, onlyCatchingUp: false)
        case .catchUp(let commit, let bytes):
            return [.applied(.zero, bytes: bytes)] + apply(commit, onlyCatchingUp: true)
        case .restore(let store, let life, let snapshot, let aside, let skipped, let request):
            restore(store, life: life, snapshot, skipped)
            let entries = (try? AsideEntries.commits(of: aside ?? [])) ?? []
            return entries.flatMap { apply($0.commit, onlyCatchingUp: true, only: store) }
                + [.restored(store, request: request)]
        case .begin(let store): replicas[store]?.isBegun = true
        case .detach(let store): replicas[store] = nil
        case .passOver(let last): return [.applied(last, bytes: 0)]
        case .compare(let divergence, let bytes): return compare(divergence, bytes)
        case .attach(let store): replicas[store]?.isAttached = true
        case .settle(let outcome):
            for offset in 0..<UInt64(outcome.count) {
                let counter = outcome.firstCounter + offset
                #expect(outcomes[counter] == nil, "node \(id): two outcomes of \(counter)")
                var fate = outcome.fate
                if case .committed(let log, let first, let epoch, let time) = fate {
                    let sequence = first.advanced(by: offset)
                    fate = .committed(log, sequence, epoch, time)
                    let target = targets[counter]
                    for name in wanted where target == .store(name) || target == .state(name.state)
                    {
                        let replica = replicas[name]
                        #expect(
                            replica?.isAttached == true && (replica?.position ?? .zero) >= sequence,
                            "node \(id): the outcome of \(counter) came before \(name) applied it")
                    }
                }
                outcomes[counter] = fate
            }
        case .opened(let request, let outcome): opened[request] = outcome
        case .reached(let request, let outcome):
            #expect(reached[request] == nil, "node \(id): two answers to \(request)")
            reached[request] = outcome
            if case .reached(let sequence) = outcome {
                for name in wanted {
                    let position = replicas[name]?.position ?? .zero
                    #expect(position >= sequence, "node \(id): \(name) is at \(position)")
                }
            }
        case .reset:
            replicas.removeAll()
            resets += 1
        }
        return []
    }
}
