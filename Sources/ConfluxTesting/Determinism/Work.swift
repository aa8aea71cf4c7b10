import Conflux
import ConfluxVocabulary
import Foundation
import Synchronization

/// The actions that several processes commit, each in the same way.
struct Work<State: ReplicatedState>: Codable {
    struct Step: Codable {
        /// The encoded action in base 64.
        let payload: String
        let sequence: UInt64
        /// Nanoseconds since the start of 1970.
        let timestamp: Int64
        /// The action's origin; nil if that is not known.
        let origin: RecordedOrigin?
    }

    private(set) var snapshot: State.Snapshot?
    private(set) var steps: [Step] = []

    /// The seed of the contexts' random numbers.
    private static var seed: UInt64 { 0x5EED }
    /// The first action's time if none is given: in November 2023.
    private static var start: Int64 { 1_700_000_000_000_000_000 }

    init(from snapshot: State.Snapshot?) {
        self.snapshot = snapshot
    }

    /// Adds an action.
    ///
    /// - Parameters:
    ///   - action: The action.
    ///   - sequence: Its sequence number; nil for the next one.
    ///   - timestamp: Its time; nil for a millisecond after the last one.
    ///   - origin: Its origin.
    /// - Throws: ``CheckFailure`` if decoding the encoded action gives a different action, or if its number does not
    ///   follow the last one.
    mutating func add(
        _ action: State.Action, sequence: UInt64? = nil, timestamp: Int64? = nil,
        origin: RecordedOrigin? = nil
    ) throws(CheckFailure) {
        let last = steps.last
        let number = sequence ?? (last?.sequence ?? 0) + 1
        guard number > last?.sequence ?? 0 else {
            throw CheckFailure(
                message: "sequence number \(number) does not follow \(last?.sequence ?? 0)")
        }
        let payload = try Self.payload(of: action)
        steps.append(
            Step(
                payload: Data(payload).base64EncodedString(), sequence: number,
                timestamp: timestamp ?? last.map { $0.timestamp + 1_000_000 } ?? Self.start,
                origin: origin))
    }

    /// Encodes an action, and checks that decoding gives it back.
    private static func payload(of action: State.Action) throws(CheckFailure) -> [UInt8] {
        let coder = ActionCoder<State.Action>()
        let name = ValueText.line(of: action)
        do {
            let bytes = try coder.encode(action, as: State.coding)
            let again = try coder.decode(bytes[...], as: State.coding)
            // Compared in the canonical coding, since in a coding of actions the order of a set's
            // elements differs each time.
            let canonical = CanonicalCoder()
            if try canonical.encode(again) == canonical.encode(action) { return bytes }
        } catch {
            throw CheckFailure(
                message: "action `\(name)` does not come back from its coding: \(error)")
        }
        throw CheckFailure(
            message: """
                action `\(name)` comes back from its coding as another one. Does its `init(from:)` read \
                all that its `encode(to:)` writes?
                """)
    }

    /// The action of a step; the first is 0.
    func action(_ step: Int) -> State.Action? {
        guard steps.indices.contains(step), let data = Data(base64Encoded: steps[step].payload)
        else { return nil }
        return try? ActionCoder<State.Action>().decode(Array(data)[...], as: State.coding)
    }

    // MARK: Committing

    /// Commits the actions one after the other.
    ///
    /// - Parameters:
    ///   - isRestored: Whether each look is followed by a new store, loaded from the snapshot, which commits the next
    ///     actions.
    ///   - reached: Called before each action, with its number from 1 on.
    /// - Returns: The state's history.
    /// - Throws: ``CheckFailure`` if a state can't be encoded or decoded.
    func history(
        isRestored: Bool, reached: (Int) -> Void
    ) throws(CheckFailure) -> StateHistory {
        var store = makeStore()
        if let snapshot { restore(snapshot, at: .zero, to: store) }
        var history = StateHistory(try json(of: store))
        for index in steps.indices {
            reached(index + 1)
            if isRestored, !history.isPending {
                store = makeStore()
                do {
                    let snapshot = try CanonicalCoder().decode(
                        State.Snapshot.self, from: history.last)
                    let position = index == 0 ? 0 : steps[index - 1].sequence
                    restore(snapshot, at: SequenceNumber(position), to: store)
                } catch {
                    throw CheckFailure(
                        message: "its snapshot before action \(index + 1) can't be read: \(error)")
                }
            }
            history.note(isRefused: try commit(index, to: store))
            if history.isDue || index == steps.count - 1 { history.note(try json(of: store)) }
        }
        return history
    }

    private func makeStore() -> Store<State> {
        // In a scope of its own, so that nothing else reaches it.
        let store = Scope().run {
            Store(state: State(), mutations: State.mutations, executor: .immediate)
        }
        // A schedule fires by the times of the actions alone.
        store.core.watch(isOver: true)
        return store
    }

    private func restore(
        _ snapshot: State.Snapshot, at position: SequenceNumber, to store: Store<State>
    ) {
        store.core.restore(snapshot, at: position) { _ in }
    }

    private func commit(_ index: Int, to store: Store<State>) throws(CheckFailure) -> Bool {
        guard let action = action(index) else {
            throw CheckFailure(message: "action \(index + 1) can't be decoded")
        }
        let step = steps[index]
        let context = ActionContext(
            sequence: SequenceNumber(step.sequence), timestamp: Timestamp(step.timestamp),
            origin: step.origin?.origin, seed: Self.seed)
        let isRefused = Atomic(false)
        store.core.deliver([OrderedAction(action: action, context: context)]) { report in
            isRefused.store(!report.refusals.isEmpty, ordering: .relaxed)
        }
        return isRefused.load(ordering: .relaxed)
    }

    private func json(of store: Store<State>) throws(CheckFailure) -> [UInt8] {
        // Nobody else uses the store, so this thread is in its lane.
        do {
            return try CanonicalCoder().encode(store.computed.state.snapshot)
        } catch {
            throw CheckFailure(message: "its state can't be encoded: \(error)")
        }
    }
}
