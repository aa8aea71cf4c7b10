import ConfluxArguments
import Foundation

/// The importance of a service's event. It depends on the event's name alone.
package enum EventLevel: String, Sendable, CaseIterable, Comparable {
    /// For later reading.
    case info
    /// The operator may have to act, if it lasts or happens again.
    case warning
    /// The operator has to act.
    case error

    /// The level of an event.
    package init(of event: String) {
        self =
            Self.errors.contains(event) ? .error : Self.warnings.contains(event) ? .warning : .info
    }

    /// A line for people, with its time and this level.
    func line(_ text: String, at time: String) -> String {
        "\(time) \(rawValue.padding(toLength: 7, withPad: " ", startingAt: 0)) \(text)"
    }

    package static func < (left: EventLevel, right: EventLevel) -> Bool {
        left.rank < right.rank
    }

    /// The least important level comes first.
    private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    /// The option for the least level that a service prints.
    package static let option = Option<EventLevel>(
        "--log-level", valueName: "LEVEL", default: .info, parse: .choice,
        summary: """
            Print events of this level and above: info, warning or error. The ready line is info, too.
            """)

    private static let errors: Set = [
        "bridgeStopped", "damaged", "diverged", "logDamaged", "logFailed", "snapshotsUnlisted",
        "storeStopped",
    ]
    private static let warnings: Set = [
        "asideFailed", "barred", "challenged", "checkpointFailed", "checkpointSetAside",
        "clockBehind", "clockJumped",
        "connectionRefused", "crashJournal", "disconnected", "feedFellBack", "frozen", "heldUp",
        "historyLost",
        "logNearlyFull", "missed", "omitted", "sequencerNotServing", "sessionForgotten", "slowed",
        "snapshotFailed", "sourcePassedOver", "staleSequencer", "subscriberDenied",
        "tickFailed", "truncateFailed", "unreachable",
        "unreadable", "unreadableFrame", "upgradeFailed",
    ]

    /// The names of all events above `info`.
    package static var named: Set<String> { errors.union(warnings) }
}
