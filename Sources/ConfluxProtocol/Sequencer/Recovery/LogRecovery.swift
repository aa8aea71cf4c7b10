import ConfluxVocabulary

/// Rebuilds the state of a log from its newest checkpoint and the entries after it (rule 20). It
/// asks the log for one thing at a time.
///
///     checkpoint? ──▶ entries after it ───▶ … ──▶ the end
///          ▲               │ does not fit
///          └─ an older one ┘      none: entries from the floor
///
/// A checkpoint saves reading, but decides nothing. A checkpoint is set aside if it can't be read,
/// is of another log, lies beyond the log's end, or does not fit the entries after it. Then an
/// older checkpoint, or the whole log, is read instead. So a wrong checkpoint costs time, but never
/// gives a wrong state.
package struct LogRecovery: Sendable {
    /// What is needed next.
    package enum Demand: Sendable, Equatable {
        /// The newest checkpoint at or below this number.
        case checkpoint(through: SequenceNumber)
        /// The commits from this number on: some or all of them.
        case entries(from: SequenceNumber)
        /// Nothing: the whole log is replayed.
        case nothing
    }

    /// A checkpoint that was not used.
    package struct SetAside: Sendable, Equatable {
        package var sequence: SequenceNumber
        package var reason: String
    }

    /// What is needed next.
    package private(set) var demand: Demand
    /// The state of what is known so far.
    package private(set) var logState: LogState
    /// The number at which the replay began: a checkpoint's, or the end of what was known
    /// before; nil if there is neither.
    package private(set) var base: SequenceNumber?
    /// The checkpoint with which the replay began, now or when the log was first followed; nil if
    /// there was none.
    package private(set) var checkpoint: SequenceNumber?
    /// The checkpoints that were not used.
    package private(set) var setAside: [SetAside] = []
    /// Where the log ends. The replay ends there, or with the commit that contains this number.
    private let last: SequenceNumber
    /// The epoch of the commit that ends there; nil if it isn't known.
    private let lastEpoch: Epoch?
    private let floor: SequenceNumber

    /// Begins a recovery.
    ///
    /// - Parameters:
    ///   - log: The log's id.
    ///   - last: Where the log ends.
    ///   - lastEpoch: The epoch of the commit that ends there, if that is known.
    ///   - floor: The lowest number that the log holds.
    ///   - known: The state of a log from its beginning up to some number; nil if nothing is known
    ///     yet. Like a checkpoint, it is not used if it does not fit.
    package init(
        log: LogID, through last: SequenceNumber, in lastEpoch: Epoch?, floor: SequenceNumber,
        goingOnFrom known: KnownLogState? = nil
    ) {
        logState = LogState(log: log)
        self.last = last
        self.lastEpoch = lastEpoch
        self.floor = floor
        demand = last == .zero ? .nothing : .checkpoint(through: last)
        if let known { goOn(from: known) }
    }

    /// What was followed of the log is not read again, unless it is of another log, or of an end
    /// that the log has lost.
    private mutating func goOn(from known: KnownLogState) {
        guard known.logState.log == logState.log, known.logState.last > .zero,
            known.logState.last <= last,
            known.logState.last.next >= floor
        else { return }
        let unknown = self
        logState = known.logState
        checkpoint = known.checkpoint
        base = known.logState.last
        do throws(WireError) {
            try goOn()
        } catch {
            self = unknown
        }
    }

    /// Answers ``Demand/checkpoint(through:)``.
    package mutating func take(_ answer: CheckpointAnswer) {
        guard case .checkpoint = demand else { preconditionFailure("a checkpoint in \(demand)") }
        switch answer {
        case .none: readFromFloor()
        case .unreadable(let reason):
            setAside.append(SetAside(sequence: .zero, reason: reason))
            readFromFloor()
        case .damaged(let sequence, let reason): pass(over: sequence, because: reason)
        case .found(let sequence, let bytes):
            do throws(WireError) {
                let found = try LogState(checkpoint: bytes)
                guard found.log == logState.log, found.last == sequence, sequence <= last,
                    sequence.next >= floor
                else {
                    pass(over: sequence, because: "it is not of this log")
                    return
                }
                base = sequence
                checkpoint = sequence
                logState = found
                try goOn()
            } catch {
                pass(over: sequence, because: "\(error)")
            }
        }
    }

    /// Answers ``Demand/entries(from:)``.
    ///
    /// - Parameter bodies: The bodies of commits, ascending; empty if the log ends before them.
    /// - Throws: ``RecoveryFailure`` if the log itself is not what a sequencer wrote.
    package mutating func take(_ bodies: [Bytes]) throws(RecoveryFailure) {
        guard case .entries(let from) = demand else {
            preconditionFailure("entries in \(demand)")
        }
        do {
            guard !bodies.isEmpty else { throw LogInconsistency(sequence: from) }
            // Entries after `last` are a newer term's. The log will report that this term is
            // over.
            for body in bodies where logState.last < last {
                try logState.apply(Commit.decode(body: body), byteCount: body.count)
            }
            try goOn()
        } catch {
            guard let base else {
                guard floor <= SequenceNumber(1) || logState.last > .zero else {
                    throw RecoveryFailure(
                        message: "the log begins at \(floor), and there is no checkpoint of what "
                            + "stood before it that can be used; restore it from a backup")
                }
                throw RecoveryFailure(
                    message: "the commit at \(logState.last.next) is not readable: \(error)")
            }
            pass(over: base, because: "the log does not go on from it: \(error)")
        }
    }

    private mutating func goOn() throws(WireError) {
        guard logState.last >= last else {
            demand = .entries(from: logState.last.next)
            return
        }
        if let lastEpoch, logState.lastEpoch != lastEpoch {
            throw .malformed(
                at: 0, expected: "of epoch \(lastEpoch), in which the log's last commit is")
        }
        logState.marks.forget(below: floor)
        demand = .nothing
    }

    private mutating func pass(over sequence: SequenceNumber, because reason: String) {
        setAside.append(SetAside(sequence: sequence, reason: reason))
        logState = LogState(log: logState.log)
        base = nil
        checkpoint = nil
        var lowest = last
        if case .checkpoint(let through) = demand { lowest = through }
        // Each checkpoint is older than the one before, so this ends.
        if sequence > SequenceNumber(1), sequence <= lowest {
            demand = .checkpoint(through: SequenceNumber(sequence.rawValue - 1))
        } else {
            readFromFloor()
        }
    }

    private mutating func readFromFloor() {
        demand = .entries(from: floor)
    }
}

/// What the log answers to `LogRecovery`.
public enum CheckpointAnswer: Sendable {
    /// There is no checkpoint.
    case none
    /// The newest checkpoint.
    case found(SequenceNumber, Bytes)
    /// The newest checkpoint is not what was written.
    case damaged(SequenceNumber, String)
    /// It is unknown whether there is one.
    case unreadable(String)
}

/// The log can't be replayed.
package struct RecoveryFailure: Error {
    /// A description of the problem, for people.
    package var message: String
}

/// What a standby has replayed of the log.
public struct KnownLogState: Sendable {
    /// The state of the log up to where the standby followed it.
    package var logState: LogState
    /// The checkpoint from which it was begun; nil if there was none.
    package var checkpoint: SequenceNumber?

    /// Makes the value from what was read.
    package init(logState: LogState, checkpoint: SequenceNumber?) {
        self.logState = logState
        self.checkpoint = checkpoint
    }
}
