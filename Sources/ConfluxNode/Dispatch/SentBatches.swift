import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// The counters under which the actions of each block were sent, until their outcomes arrive.
///
/// Outcomes arrive in the order in which the actions were sent. Outcomes of a former session may
/// still arrive after counters have begun anew. They are counted off, so that everything in here
/// belongs to the present session, and no withdrawal reaches another action with the same counter.
package struct SentBatches {
    private struct Entry {
        var lastCounter: UInt64
        var block: ObjectIdentifier
    }

    /// The blocks in the order in which they were sent. *Invariant*: the window bounds them.
    private var entries: [Entry] = []
    /// The entries before this index have their outcomes.
    private var head = 0
    private var firstCounters: [ObjectIdentifier: UInt64] = [:]
    /// How many actions of the present session have no outcome yet.
    private var openCount: UInt64 = 0
    /// How many actions of former sessions have no outcome.
    private var formerCount: UInt64 = 0
    /// The token of the session's next action, but for its counter. It names the last entry of the session that is
    /// known: that of the node's joining, or of the last action with a receipt. nil before the first session.
    private var token: DispatchToken?

    package init() {}

    /// Begins a session, in which counters begin anew.
    ///
    /// - Parameters:
    ///   - incarnation: The session's.
    ///   - log: The log.
    ///   - epoch: The present term. Usually the node has joined in it. If not, its first tokens tell nothing: the epoch of
    ///     the entry is another one.
    package mutating func beginSession(
        _ incarnation: Incarnation, of log: LogID, in epoch: Epoch
    ) {
        token = DispatchToken(
            log: log, origin: Origin(incarnation: incarnation, counter: 0),
            since: StoreVersion(sequence: SequenceNumber(incarnation.rawValue), epoch: epoch))
        formerCount += openCount
        openCount = 0
        entries = []
        head = 0
        firstCounters = [:]
    }

    package mutating func add(_ block: OutcomeBlock, firstCounter: UInt64, count: Int) {
        let key = ObjectIdentifier(block)
        openCount += UInt64(count)
        entries.append(Entry(lastCounter: firstCounter + UInt64(count) - 1, block: key))
        firstCounters[key] = firstCounter
        if let token { block.identify(token.advanced(by: Int(firstCounter))) }
    }

    /// The counter of an action; nil once its outcome has arrived.
    package func counter(of index: Int, in block: OutcomeBlock) -> UInt64? {
        firstCounters[ObjectIdentifier(block)].map { $0 + UInt64(index) }
    }

    package mutating func settle(_ outcome: ActionOutcome) {
        guard formerCount == 0 else {
            formerCount -= min(formerCount, UInt64(outcome.count))
            return
        }
        openCount -= min(openCount, UInt64(outcome.count))
        if case .committed(let log, let first, let epoch, _) = outcome.status, let token {
            self.token = DispatchToken(
                log: log, origin: token.origin,
                since: StoreVersion(
                    sequence: first.advanced(by: UInt64(outcome.count) - 1), epoch: epoch))
        }
        let end = outcome.firstCounter + UInt64(outcome.count)
        while head < entries.count, entries[head].lastCounter < end {
            firstCounters[entries[head].block] = nil
            head += 1
        }
        if head > 32, head * 2 > entries.count {
            entries.removeFirst(head)
            head = 0
        }
    }
}
