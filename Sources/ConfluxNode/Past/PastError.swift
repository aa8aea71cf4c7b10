import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// Why the past of a store can't be shown.
public struct PastError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure: stable, so that a program can decide by it.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        /// The log has no such entry yet.
        case aboveNewest
        /// What the log keeps begins later: see ``PastError/floor``.
        case belowFloor
        /// There is no such store, or the store is not one that a node replicates.
        case unknownStore
        /// The number to leave out is none of an action for the store.
        case notAnAction
        /// The log discarded an entry or a snapshot meanwhile, or can't read it.
        case discarded
        /// This program can't judge by the rules of the schema version, or can't read its form.
        case unreadableVersion
        /// The store stops at an entry, or its state can't be encoded.
        case stopped
        /// The connection's key may not observe the store.
        case notAllowed
        /// The sequencer does not answer, or the connection ended.
        case unreachable
        /// It took too long.
        case timedOut
        /// The task was cancelled.
        case cancelled
    }

    /// The kind of failure.
    public let code: Code
    /// What happened and what to do.
    public let message: String
    /// The lowest number at which the state can be shown; nil unless the code is `belowFloor`.
    public let floor: SequenceNumber?

    /// The code and the message.
    public var description: String { "\(code.rawValue): \(message)" }

    init(_ code: Code, _ message: String, floor: SequenceNumber? = nil) {
        self.code = code
        self.message = message
        self.floor = floor
    }

    init(_ error: NodeError) {
        let code: Code =
            switch error.code {
            case .timedOut: .timedOut
            case .cancelled: .cancelled
            case .keyRefused: .notAllowed
            default: error.questionFailure == .notAllowed ? .notAllowed : .unreachable
            }
        self.init(code, error.message)
    }

    // MARK: What can go wrong with a number

    static func aboveNewest(
        _ sequence: SequenceNumber, _ newest: SequenceNumber
    ) -> PastError {
        PastError(
            .aboveNewest,
            "There is no entry \(sequence) yet: the log ends at \(newest). Give a lower number.")
    }

    static func belowFloor(
        _ sequence: SequenceNumber, _ floor: SequenceNumber, of store: StoreName
    ) -> PastError {
        PastError(
            .belowFloor,
            """
            The state of \(store) at \(sequence) is not kept: the log has its states from \(floor) on. Give \(floor) or \
            a higher number. A longer log (--keep-bytes) keeps more.
            """,
            floor: floor)
    }

    static func notKept(
        _ sequence: SequenceNumber, _ floor: SequenceNumber, of store: StoreName
    ) -> PastError {
        PastError(
            .belowFloor,
            """
            The log keeps no state of \(store) at or before \(sequence). The oldest one is at \(floor): give \(floor) or a \
            higher number.
            """,
            floor: floor)
    }

    static func unreadable(_ store: StoreName) -> PastError {
        PastError(
            .unreadableVersion,
            "The kept state of \(store) is not in JSON. Use a program that has its code."
        )
    }

    static func unknownStore(_ store: StoreName) -> PastError {
        PastError(
            .unknownStore,
            """
            There is no store \(store): it was never opened, or it was dropped. conflux status shows the stores.
            """)
    }

    static func notAnAction(_ sequence: SequenceNumber, for store: StoreName) -> PastError {
        PastError(
            .notAnAction,
            """
            Entry \(sequence) is no action for \(store) up to the number that is shown, so there is nothing to leave \
            out. conflux log --target \(store) shows its actions.
            """)
    }

    static func discarded(_ first: SequenceNumber, _ reason: String? = nil) -> PastError {
        PastError(
            .discarded,
            """
            Entry \(first) can't be read any more: \
            \(reason ?? "the log has discarded it meanwhile, or lost it"). Ask again for a higher number.
            """)
    }

    static func snapshotGone(_ store: StoreName, _ sequence: SequenceNumber) -> PastError {
        PastError(
            .discarded,
            """
            The log no longer gives the snapshot of \(store) at \(sequence): a newer one replaced it meanwhile, or it is \
            damaged. Ask again, for a higher number if that does not help.
            """)
    }

    static func unreadableVersion(
        _ store: StoreName, _ version: UInt32, at sequence: SequenceNumber,
        _ known: SupportedVersions
    ) -> PastError {
        PastError(
            .unreadableVersion,
            """
            \(store) had schema version \(version) at \(sequence), and this program judges by \
            \(known.oldest == known.newest ? "\(known.newest)" : "\(known.oldest) to \(known.newest)"). Use a program \
            of that time, or give a number at which the store has another version.
            """)
    }

    static func notAllowed(
        _ sequence: SequenceNumber, for store: StoreName
    ) -> PastError {
        PastError(
            .notAllowed,
            """
            This key may not observe entry \(sequence), which concerns \(store). Use a key that may observe all stores \
            of its state.
            """)
    }

    static func late(_ limit: Duration?) -> PastError {
        PastError(
            .timedOut,
            """
            The state was not made within \(limit.map { "\($0)" } ?? "the time"). Give more time, or a number nearer to a \
            snapshot.
            """)
    }

    /// The error of a state that is no JSON of which a difference can be made.
    package static func unreadable(
        _ sequence: SequenceNumber, _ failure: CodingFailure
    ) -> PastError {
        PastError(
            .stopped,
            "The state at \(sequence) can't be compared: \(failure.message). See both states.")
    }

    static let cancelled = PastError(.cancelled, "The task was cancelled. Ask again.")
}
