import ConfluxHashing
import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// A node whose stores are lists of the texts of their actions.
struct SimulatedNode {
    struct Replica {
        var life: SequenceNumber
        var position: SequenceNumber
        /// Whether it has got the state from which it catches up.
        var isBegun = false
        var isAttached = false
        var texts: [String] = []
        /// The entries that have no effect on the replica. `refusals` has those since the last digest point.
        var skipped: Set<SequenceNumber> = []
        var refusals = DigestHasher()
        var isFrozen = false
        /// The schema version in force.
        var version: UInt32 = 1
        /// The entry at which the replica stopped. It applies no further ones.
        var stoppedAt: SequenceNumber?
        /// Its encodings at the last two digest points.
        var encodings: [(point: SequenceNumber, bytes: [UInt8])] = []
    }

    let id: Int
    var machine: ReplicaMachine
    var isSubscribed = false
    /// How many of the feed's next messages are lost.
    var feedDrops = 0
    var replicas: [StoreName: Replica] = [:]
    /// The texts of a bridged state, with their sequence numbers.
    var bridgedTexts: [String] = []
    /// Whether each of its bridged states has a local store from the start.
    var hasLocals = true
    /// The bridged states, by the requests that opened them. `attachedStates` has those whose stores get the feed.
    private var bridges: [UInt64: Name] = [:]
    var attachedStates: Set<Name> = []
    var outcomes: [UInt64: ActionOutcome.Status] = [:]
    var opened: [UInt64: OpenOutcome] = [:]
    var reached: [UInt64: ReachOutcome] = [:]
    /// Outcomes and numbers that are known, but wait for replicas.
    var held: [UInt64: ActionOutcome.Status] = [:]
    var due: [UInt64: SequenceNumber] = [:]
    /// How far the node has applied.
    var progress = ApplyProgress()
    var asked: [Question] = []
    var answers: [Answer] = []
    var events: [ReplicaEvent] = []
    var end: ReplicaEnd?
    var sent: [NodeMessage] = []
    /// Whether it never reports that it has applied anything: it answers, but does not advance.
    var isStuck = false
    /// The schema version of its states. A version above 1 adds "migrated" to its lists.
    /// The newest version that it understands, and the oldest; the same if that is nil.
    var schemaVersion: UInt32 = 1
    var oldestVersion: UInt32?
    var policy = UpgradePolicy.whenAllUnderstand
    /// What its migration adds to a list, or `throw` or `hang`; nil for what others add.
    var migration: String?
    /// The texts at which its replicas stop.
    var poisons: Set<String> = []
    /// How it answers a request for a part of a state.
    var giving = Giving.whatItHas
    /// Whether its votes are delayed. Then `heldVotes` has them.
    var isVotingLate = false
    var heldVotes: [Vote] = []
    /// How often its history was lost.
    var resets: UInt64 = 0
    /// The divergences that it was told to compare with its states.
    var compared: [(divergence: Divergence, bytes: Bytes?)] = []

    enum Giving: Equatable {
        /// The last two are a lie after which it is silent, and one byte at a time.
        case whatItHas, nothing, silence, lies, lieThenSilence, dribble
        /// These bytes, whatever it has.
        case forged([UInt8])
    }
    /// The stores that the node wants to host. `targets` has the target of each of its actions.
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
                    request: nextRequest, subject: .store(name),
                    versions: SupportedVersions(
                        schemaVersion, oldest: oldestVersion, policy: policy),
                    events: [], initial: initial)))
        nextRequest += 1
        wanted.insert(name)
    }

    /// Ends the life of a store that the node hosts.
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

    mutating func bridge(_ state: String, schemaVersion: UInt32 = 1, shapes: Bytes? = nil) {
        guard let name = Name(state) else { return }
        bridges[nextRequest] = name
        inputs.append(
            .open(
                Open(
                    request: nextRequest, subject: .state(name),
                    versions: SupportedVersions(schemaVersion),
                    events: [],
                    initial: .none, shapes: shapes)))
        nextRequest += 1
    }

    mutating func dispatch(
        _ texts: [String], to target: String, life: SequenceNumber = .zero,
        ifUnchangedSince version: StoreVersion? = nil, isAtomic: Bool
    ) {
        var builder = BatchBuilder()
        for text in texts {
            // A text `target: text` overrides the batch's target.
            let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
            let place = parts.count == 2 ? parts[0] : target
            guard let parsed = Target(place) else { continue }
            targets[machine.nextCounter + UInt64(builder.count)] = parsed
            builder.append(
                target: BatchTarget(
                    target: parsed, life: life, schemaVersion: 1, coding: .json,
                    unchangedSince: version),
                payload: Array((parts.last ?? "").utf8))
        }
        inputs.append(.dispatched(machine.batch(of: &builder, isAtomic: isAtomic)))
    }

    mutating func takeInput() -> ReplicaInput? {
        inputs.isEmpty ? nil : inputs.removeFirst()
    }

    /// - Returns: The frames that the node sends, and all effects of its machine.
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
                frames.append(Frame.encode(message, by: machine.speaker))
            case .connect: break
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
            case .loaded: break  // no scenario loads for a reader
            case .event(let event):
                events.append(event)
                // A new session: its counters begin with 1.
                if case .joined = event {
                    for counter in held.keys { tell(counter) }
                    outcomes.removeAll()
                    targets.removeAll()
                }
            case .end(let end): self.end = end
            }
        }
        return (frames, effects)
    }

    /// - Returns: What the machine is told about it.
    private mutating func perform(_ delivery: Delivery) -> [ReplicaInput] {
        var told: [ReplicaInput] = []
        switch delivery {
        case .commit(let commit, let bytes):
            progress.liveBytes += bytes
            progress.applied = max(progress.applied, commit.last)
            told = [.applied(progress)] + apply(commit)
        case .catchUp(let commit, let bytes, let subjects):
            progress.catchUpBytes += bytes
            told = [.applied(progress)] + apply(commit, to: subjects)
        case .restore(
            let store, let life, let snapshot, let inForce, let aside, let skipped, let through,
            let request):
            restore(store, life: life, snapshot, in: inForce, skipped)
            replicas[store]?.isBegun = true
            let entries = (try? AsideEntries.commits(of: aside ?? [])) ?? []
            told = entries.flatMap { apply($0.commit, to: [.store(store)]) }
            replicas[store]?.isBegun = false
            replicas[store]?.position = through
            told.append(
                .reported(
                    .ready(.store(store), through: through, request: request), resets: resets))
        case .begin(.store(let store)): replicas[store]?.isBegun = true
        case .passOver(let last):
            replicas = replicas.filter { !$1.isAttached }
            progress.applied = max(progress.applied, last)
            told = [.applied(progress)]
        case .migrate(let store, let life, let snapshot, let version):
            told = migrate(store, life: life, snapshot, to: version)
        case .compare(let divergence, let bytes): told = compare(divergence, bytes)
        case .attach(.store(let store)): replicas[store]?.isAttached = true
        case .begin(.state): break
        case .attach(.state(let state)): attachedStates.insert(state)
        case .settle(let outcome): hold(outcome)
        case .opened(let request, let outcome):
            opened[request] = outcome
            if hasLocals, case .opened = outcome, let state = bridges[request],
                !attachedStates.contains(state)
            {
                told = [inhabit(state)]
            }
        case .reach(let request, let outcome):
            #expect(
                reached[request] == nil && due[request] == nil,
                "node \(id): two answers to \(request)")
            if case .due(let sequence) = outcome {
                due[request] = sequence
            } else {
                reached[request] = outcome
            }
        case .reset:
            // Known outcomes are reported, although the replicas start again.
            for counter in held.keys { tell(counter) }
            replicas.removeAll()
            attachedStates = []
            progress.applied = .zero
            progress.resets += 1
            resets += 1
        }
        tellReached()
        return told
    }

    /// Gives a bridged state a local store, which gets the entries from here on.
    func inhabit(_ state: Name) -> ReplicaInput {
        .reported(.ready(.state(state), through: progress.applied, request: 0), resets: resets)
    }

    /// Keeps a known outcome until the replicas that it concerns have reached its number.
    private mutating func hold(_ outcome: ActionOutcome) {
        for offset in 0..<UInt64(outcome.count) {
            let counter = outcome.firstCounter + offset
            #expect(
                outcomes[counter] == nil && held[counter] == nil,
                "node \(id): two outcomes of \(counter)")
            var status = outcome.status
            if case .committed(let log, let first, let epoch, let time) = status {
                status = .committed(log, first.advanced(by: offset), epoch, time)
            }
            held[counter] = status
        }
    }

    private mutating func tell(_ counter: UInt64) {
        outcomes[counter] = held.removeValue(forKey: counter)
    }

    private func hasReached(_ name: StoreName, _ sequence: SequenceNumber) -> Bool {
        guard let replica = replicas[name] else { return false }
        return replica.stoppedAt != nil || replica.position >= sequence
    }

    private mutating func tellReached() {
        for (counter, status) in held {
            if case .committed(_, let sequence, _, _) = status {
                let target = targets[counter]
                let concerned = wanted.filter {
                    target == .store($0) || target == .state($0.state)
                }
                guard concerned.allSatisfy({ hasReached($0, sequence) }) else { continue }
            }
            tell(counter)
        }
        for (request, sequence) in due where wanted.allSatisfy({ hasReached($0, sequence) }) {
            due[request] = nil
            reached[request] = .due(sequence)
        }
    }
}
