import ConfluxVocabulary

/// An action's place, time, origin and random numbers: the same on every replica.
///
/// A reducer takes all that it needs besides its state and its action from here. Without a node
/// there is no log: the sequence number is the store's own count of its actions, the timestamp is
/// from the wall clock, there is no origin, and the random numbers differ from store to store.
public struct ActionContext: Sendable {
    /// The action's place in the log; without a node, in the store's own count.
    public let sequence: SequenceNumber
    /// When the sequencer ordered the action; without a node, when the store came to it.
    public let timestamp: Timestamp
    /// Who dispatched the action; nil without a node, and for what a ``Schedule`` fires.
    public let origin: Origin?
    /// The schema version by whose rules the action is judged: the version that the store has at the action's place in
    /// the log (``BridgedState/oldestSchemaVersion``). Without a node, the newest: `Int.max`.
    ///
    /// ```swift
    /// let hold: Duration = context.schemaVersion < 2 ? .seconds(30) : .seconds(10)
    /// ```
    public let schemaVersion: Int
    /// The seed of all random numbers of one store in one log.
    private let seed: UInt64

    /// Makes a context, for example to test a model.
    ///
    /// - Parameters:
    ///   - sequence: The action's place; zero stands before the first.
    ///   - timestamp: The action's time; the start of 1970 if none is given.
    ///   - origin: Who dispatched it.
    ///   - seed: Chooses the random numbers, together with the sequence number.
    ///   - schemaVersion: The version by whose rules the action is judged; the newest if none is given.
    public init(
        sequence: SequenceNumber = .zero, timestamp: Timestamp = Timestamp(0),
        origin: Origin? = nil, seed: UInt64 = 0, schemaVersion: Int = .max
    ) {
        self.sequence = sequence
        self.timestamp = timestamp
        self.origin = origin
        self.seed = seed
        self.schemaVersion = schemaVersion
    }

    /// The context of an action that fires with the action of this context.
    ///
    /// - Parameter count: The count of firings with this action, from 1 on.
    /// - Returns: The context.
    func ofFiring(_ count: Int) -> ActionContext {
        var mixer = SplitMix64(seed: UInt64(count))
        return ActionContext(
            sequence: sequence, timestamp: timestamp, origin: nil, seed: seed ^ mixer.next(),
            schemaVersion: schemaVersion)
    }

    /// A generator of this action's random numbers, at its start.
    ///
    /// Each use begins anew, with the same numbers. So draw all that an action needs from one:
    ///
    /// ```swift
    /// var random = context.random
    /// let first = Int.random(in: 1...6, using: &random)
    /// let second = Int.random(in: 1...6, using: &random)
    /// ```
    public var random: SplitMix64 {
        // One step of the generator spreads the number, so that neighbouring actions share no
        // sequence.
        var mixer = SplitMix64(seed: sequence.rawValue)
        return SplitMix64(seed: seed ^ mixer.next())
    }

    /// The seed of all random numbers of one store in one log: FNV-1a of both, mixed.
    ///
    /// - Parameters:
    ///   - log: The log's id.
    ///   - store: The store's name.
    /// - Returns: The seed for ``init(sequence:timestamp:origin:seed:)``.
    package static func seed(log: LogID, store: StoreName) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        func take(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        for half in [log.high, log.low] {
            for shift in stride(from: 56, through: 0, by: -8) {
                take(UInt8(truncatingIfNeeded: half >> UInt64(shift)))
            }
        }
        store.description.utf8.forEach(take)
        var mixer = SplitMix64(seed: hash)
        return mixer.next()
    }
}
