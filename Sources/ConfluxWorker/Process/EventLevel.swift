import ConfluxArguments

/// How important an event of a service is. Only the event's name decides.
package enum EventLevel: String, Sendable, CaseIterable, Comparable {
    /// Nobody has to do anything. It is there to be read later.
    case info
    /// Somebody may have to do something, if it lasts or happens again.
    case warning
    /// Somebody has to do something.
    case error

    /// The level of an event.
    package init(of event: String) {
        self =
            Self.errors.contains(event) ? .error : Self.warnings.contains(event) ? .warning : .info
    }

    package static func < (left: EventLevel, right: EventLevel) -> Bool {
        left.rank < right.rank
    }

    private var rank: Int {
        switch self {
        case .info: 0
        case .warning: 1
        case .error: 2
        }
    }

    /// The option with which a service prints fewer events.
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
        "connectionRefused", "crashJournal", "disconnected", "frozen", "historyLost",
        "logNearlyFull", "missed", "omitted", "sequencerNotServing", "sessionForgotten", "slowed",
        "snapshotFailed", "staleSequencer", "truncateFailed", "unreadable", "unreadableFrame",
    ]

    /// The names of events whose level is not info.
    package static var named: Set<String> { errors.union(warnings) }
}
