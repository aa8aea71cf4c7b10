import Conflux
import ConfluxProtocol

/// Which counters the actions of a block were sent under, as long as their outcome is due.
///
/// Outcomes come in the order in which the actions were sent. Those of a session that is gone may
/// still come when counters have begun anew: they are counted off, so that what is in here is of
/// the present session, and no withdrawal meets another action with the same counter.
package struct SentBatches {
    private struct Entry {
        var lastCounter: UInt64
        var block: ObjectIdentifier
    }

    /// In the order in which they were sent. *Invariant*: bounded, as the window is.
    private var entries: [Entry] = []
    /// The entries before this index are done with.
    private var head = 0
    private var firstCounters: [ObjectIdentifier: UInt64] = [:]
    /// How many actions of the present session have no outcome.
    private var openCount: UInt64 = 0
    /// How many actions of former sessions have none.
    private var formerCount: UInt64 = 0

    package init() {}

    /// Counters begin anew.
    package mutating func beginSession() {
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
    }

    /// The counter of an action whose outcome is due; nil when it was told.
    package func counter(of index: Int, in block: OutcomeBlock) -> UInt64? {
        firstCounters[ObjectIdentifier(block)].map { $0 + UInt64(index) }
    }

    package mutating func settle(_ outcome: ActionOutcome) {
        guard formerCount == 0 else {
            formerCount -= min(formerCount, UInt64(outcome.count))
            return
        }
        openCount -= min(openCount, UInt64(outcome.count))
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
