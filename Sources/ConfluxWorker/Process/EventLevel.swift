import ConfluxArguments

/// How much an event of a service matters. It follows from the event's name alone.
package enum EventLevel: String, Sendable, CaseIterable, Comparable {
    /// It is told so that it can be read later.
    case info
    /// Somebody may have to do something, if it stays so or comes again.
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

    /// The option by which a service prints less.
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

    /// The names that have another level than info.
    package static var named: Set<String> { errors.union(warnings) }
}
