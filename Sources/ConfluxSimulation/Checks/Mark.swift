/// What a simulation reached: rules that took effect, recovery paths that were taken, bounds that were hit,
/// faults that happened. Runs over many seeds that miss a mark prove nothing about it.
public struct Marks: Sendable, Equatable {
    /// How often each was reached.
    public private(set) var counts: [Mark: Int] = [:]

    /// Makes marks with no mark reached.
    public init() {}

    mutating func hit(_ mark: Mark) { counts[mark, default: 0] += 1 }

    /// Adds the marks of another run.
    public mutating func add(_ other: Marks) {
        counts.merge(other.counts, uniquingKeysWith: +)
    }

    /// The marks that were never reached.
    ///
    /// - Parameter isBounded: Whether the logs had a bound. Without one, some marks can't be reached.
    /// - Returns: These marks.
    public func missed(isBounded: Bool) -> [Mark] {
        Mark.allCases.filter { counts[$0] == nil && (isBounded || !$0.needsBound) }
    }
}

/// Something that simulations should reach.
public enum Mark: String, Sendable, Hashable, CaseIterable {
    // Faults
    case feedLost, feedDoubled, feedDelayed, feedReconnected, queueOverflowed, surplusRefused
    case connectionBroken, connectionBrokenUnderWay, framesOutlivedConnection
    case nodeCrashed, nodeCrashedAtEffect, sequencerCrashed, sequencerCrashedAtEffect
    case crashedBehindAppend, crashedBeforeAppend
    case nodePaused, sequencerPaused, rivalStarted
    case powerLostWithTail, oldCopyRestored, memoryLost
    case appendUnknownLanded, appendUnknownLost, logFailed, termRenewed, logSlow, readSlow,
        applySlow, codingSlow, storeSlow, clockJumped

    // Several sequencers on one log (rules 46, 47)
    case takeOverTried, redirected, handedOver, termGivenUp, followFailed, answerOfOtherTerm
    case etcdUnreachable, requestDoubled, lateRequestDone, lateRequestRefused, cutOffFromNodes

    // Sessions (rules 2, 8, 10)
    case joined, sessionTakenUp, rejoinedAfterLeft, rejoinAsked, sessionForgotten
    case left, forgottenAfterBye, forgottenWhileAway, tableFull
    case nameAsked, nameTaken, stoppedInHandshake
    case historyLost, staleSequencer, challenged, superseded

    // Submission (rules 9, 14, 27)
    case receipt, rejected, refused, unknownOutcome, unrecorded, conditionHeld, conflict
    case expectedGap, expectedFull, deduplicated, resubmitted, batchOfSeveral
    case outboxFull, windowFull
    case withdrawalAsked, voidSubmitted, withdrawn
    case transactionRead, transactionTorn, transactionFailed, transactionHeld, transactionConflict
    case tokenFound, tokenExcluded, tokenUnknown, tokenOpen

    // Timers and leases (rules 26 and 42)
    case timerSet, timerCancelled, timerCancelledLate, timerDropped
    case leaseHeld, leaseUsed, leaseLost, storeLocked

    // The feed and catching up (rules 4, 5, 6)
    case holeFetched, catchUpFetched, lateStoreAttached, bufferDropped, deliveryFull
    case lostLastSeenByBeat, fetchWaited, commitCut, attachedBesideOthers

    // Stores (rule 16)
    case created, concurrentCreators, adopted, closed, reopened
    case dropAsked, dropped, otherLife

    // Checkpoints, admission (rules 20, 28)
    case checkpointMade, startedFromCheckpoint, admissionSlowed

    // Digest points and snapshots (rules 18, 19, 22)
    case keeperDigested, lateVote, snapshotTaken, snapshotFailed, digestMismatch
    case uploadHandedOver, partServed, snapshotLoaded, loadRestarted, compared, comparedInVain
    case spoilt, divergedMajority, divergedNone, located, reloaded, converged

    // Versions, freezing, skipping (rules 17, 21, 23)
    case upgraded, upgradeAsked, upgradeFailed, replayed, rolledBack, refusedOlder, refusedNewer
    case migrationAsked, migrationFailed, migrationDiffered, migrationHung, migrationKilled
    case killedRehearsing, killedFencing, killedSaving, killedMigrating, killedReady
    case told, leftWithSnapshot
    case frozen, frozenUnconfirmed, thawed
    case poisoned, poisonStopped, skipAsked, skipped, skipRefused, reloadAsked, skippedBehind,
        effectUnknown

    // The floor (rule 20)
    case truncated, truncateFailed, startedAboveFloor, fallback, fallbackAboveFloor
    case behindFloor, missed, keptAside, asideLoaded

    // A log with a bound
    case heldUp, logNearlyFull, logHasRoom, logFull

    // Damage
    case damageMet, unlisted, heldOff

    // Questions
    case questionAnswered, questionFailed, effectTold, refusalTold

    // Waiting for a number (rule 29)
    case barrierAsked, barrierConfirmed, receiptAwaited, waitFailed

    // The end
    case sequencerStopped, nodeLeft, nodeRefused

    /// Whether it can only be reached if the log has a bound.
    var needsBound: Bool {
        switch self {
        case .heldUp, .logNearlyFull, .logHasRoom, .logFull: true
        default: false
        }
    }
}
