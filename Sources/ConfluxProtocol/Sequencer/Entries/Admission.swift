import ConfluxVocabulary

/// Whether a majority of the replicas needs time to catch up (rule 28).
///
///     never current ──▶ current ──▶ lagging ── after slowdownMax ──▶ stuck
///                          ▲           │                               │
///                          └───────────┴─── within the bound again ────┘
///
/// A live replica that falls behind by more than a bound lags. While those that lag are more than
/// half of the live replicas, little is admitted: so many bytes a beat, and at least one batch; the
/// rest is discarded and submitted again, and every sender still gets every outcome. A replica
/// counts for a bounded time only, then it is stuck, whatever it says, until it has caught up. One
/// that was never within the bound (that just joined, or that comes back again and again) has not
/// fallen behind, and slows nobody.
struct Admission: Sendable {
    /// What became of a review.
    enum Change: Sendable, Equatable {
        case slowed(lagging: Int, of: Int)
        case resumed
    }

    private enum Standing: Sendable, Equatable {
        case current
        case lagging(since: Duration)
    }

    /// The replicas that were within the bound once. *Invariant*: each is a remembered session.
    private var standings: [Incarnation: Standing] = [:]
    /// Whether admission is slow now.
    private(set) var isSlow = false
    /// What was admitted since the last review.
    private var admittedBytes = 0
    private var admittedCount = 0
    /// When replicas are looked at next.
    private var reviewAt = Duration.zero

    /// Looks at the replicas, once a beat.
    ///
    /// - Returns: nil when nothing changed, or it is too early.
    mutating func review(
        _ sessions: SessionTable, hosting directory: StoreDirectory, last: SequenceNumber,
        at now: Duration, by settings: SequencerSettings
    ) -> Change? {
        guard now >= reviewAt else { return nil }
        reviewAt = now + settings.beatInterval
        admittedBytes = 0
        admittedCount = 0
        standings = standings.filter { sessions[$0.key] != nil }
        var live = 0
        var lagging = 0
        for incarnation in directory.hosting.hosts {
            guard let session = sessions[incarnation] else { continue }
            live += 1
            let isBehind = last.rawValue - session.applied.rawValue > settings.lagEntriesMax
            switch (standings[session.incarnation], isBehind) {
            case (_, false): standings[session.incarnation] = .current
            case (.current, true):
                standings[session.incarnation] = .lagging(since: now)
                lagging += 1
            case (.lagging(let since), true):
                if now - since < settings.slowdownMax { lagging += 1 }
            case (nil, true): break
            }
        }
        let wasSlow = isSlow
        isSlow = lagging * 2 > live
        guard isSlow != wasSlow else { return nil }
        return isSlow ? .slowed(lagging: lagging, of: live) : .resumed
    }

    /// Whether a batch may be admitted now; if so, it counts as admitted. What takes no room in a
    /// commit takes no other batch's turn either.
    mutating func admit(bytes: Int, by settings: SequencerSettings) -> Bool {
        guard isSlow, bytes > 0 else { return true }
        guard admittedCount == 0 || admittedBytes + bytes <= Int(settings.slowBytesPerBeat) else {
            return false
        }
        admittedBytes += bytes
        admittedCount += 1
        return true
    }
}

extension SequencerMachine {
    /// Looks at the replicas, if the time has come.
    mutating func reviewAdmission(at now: Duration, into effects: inout [SequencerEffect]) {
        let change = admission.review(
            sessions, hosting: directory, last: tenure.last, at: now, by: settings)
        switch change {
        case .slowed(let lagging, let live):
            effects.append(.note(.slowed(lagging: lagging, of: live)))
        case .resumed: effects.append(.note(.resumed))
        case nil: break
        }
    }
}
