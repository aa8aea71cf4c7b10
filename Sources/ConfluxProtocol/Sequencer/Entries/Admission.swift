import ConfluxVocabulary

/// Whether a majority of the replicas needs time to catch up (rule 28).
///
///     never current ──▶ current ──▶ lagging ── after slowdownMax ──▶ stuck
///                          ▲           │                               │
///                          └───────────┴─── within the bound again ────┘
///
/// A live replica lags if it is behind by more than a bound. While the lagging replicas are more
/// than half of the live ones, admission slows: each beat admits a bounded number of bytes, but at
/// least one batch. The rest is discarded and resubmitted, and every sender still gets every
/// outcome. A replica slows admission for a bounded time only. After that it is stuck, whatever it
/// reports, until it has caught up. A replica that was never within the bound has not fallen
/// behind, and slows nobody. It may have just joined, or come back again and again.
struct Admission: Sendable {
    /// The result of a review.
    enum Change: Sendable, Equatable {
        case slowed(lagging: Int, of: Int)
        case resumed
    }

    private enum Standing: Sendable, Equatable {
        case current
        case lagging(since: Duration)
    }

    /// The replicas that have been within the bound. *Invariant*: each belongs to a remembered
    /// session.
    private var standings: [Incarnation: Standing] = [:]
    /// Whether admission is slow at present.
    private(set) var isSlow = false
    /// What was admitted since the last review.
    private var admittedBytes = 0
    private var admittedCount = 0
    /// When the replicas are reviewed next.
    private var reviewAt = Duration.zero

    /// Reviews the replicas, once a beat.
    ///
    /// - Returns: The change; nil if nothing changed, or if it is too early for a review.
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

    /// Whether a batch may be admitted now. If so, it counts as admitted. A batch that takes no
    /// room in a commit is always admitted, and does not count.
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
    /// Reviews the replicas, if a review is due.
    mutating func reviewAdmission(at now: Duration, into effects: inout [SequencerEffect]) {
        let change = admission.review(
            sessions, hosting: directory, last: term.last, at: now, by: settings)
        switch change {
        case .slowed(let lagging, let live):
            effects.append(.note(.slowed(lagging: lagging, of: live)))
        case .resumed: effects.append(.note(.resumed))
        case nil: break
        }
    }
}
