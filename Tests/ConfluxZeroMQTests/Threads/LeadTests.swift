import ConfluxZeroMQ
import Dispatch
import Foundation
import Synchronization
import Testing

/// Which thread drives the sockets while another one does something else.
@Suite(.timeLimit(.minutes(1)))
struct LeadTests {
    private func start(_ body: @escaping @Sendable () -> Void) { Thread { body() }.start() }

    @Test func `a leading thread keeps no relief waiting`() {
        let lead = Lead()
        lead.take()
        let done = DispatchSemaphore(value: 0)
        let turns = Atomic(0)
        start {
            lead.relieve(isOver: { false }, turn: { turns.add(1, ordering: .relaxed) })
            done.signal()
        }
        done.wait()
        lead.letGo()
        let count = turns.load(ordering: .relaxed)
        #expect(count == 0)
    }

    @Test func `a returning thread ends the relief, even if no turn releases the lead`() {
        let lead = Lead()
        let mayComeBack = DispatchSemaphore(value: 0)
        let isDone = Atomic(false)
        let turns = Atomic(0)
        let overlaps = Atomic(0)
        let isDriving = Atomic(false)
        start {
            lead.take()
            lead.aside({ mayComeBack.wait() }, wakingBy: {}, wakingReliefBy: {})
            if isDriving.load(ordering: .acquiring) { overlaps.add(1, ordering: .relaxed) }
            lead.letGo()
            isDone.store(true, ordering: .releasing)
        }
        while !isDone.load(ordering: .acquiring) {
            lead.relieve(isOver: { false }) {
                isDriving.store(true, ordering: .releasing)
                if turns.add(1, ordering: .relaxed).newValue == 3 { mayComeBack.signal() }
                isDriving.store(false, ordering: .releasing)
            }
        }
        let (count, overlapCount) = (
            turns.load(ordering: .relaxed), overlaps.load(ordering: .relaxed)
        )
        #expect(count >= 3 && overlapCount == 0)
    }

    @Test func `a thread that returns during a turn's sleep leads after the turn`() {
        let lead = Lead()
        let mayComeBack = DispatchSemaphore(value: 0)
        let woken = DispatchSemaphore(value: 0)
        let isDone = Atomic(false)
        let turns = Atomic(0)
        start {
            lead.take()
            lead.aside(
                { mayComeBack.wait() }, wakingBy: { woken.signal() }, wakingReliefBy: {})
            isDone.store(true, ordering: .releasing)
            lead.letGo()
        }
        while !isDone.load(ordering: .acquiring) {
            lead.relieve(isOver: { false }) {
                turns.add(1, ordering: .relaxed)
                mayComeBack.signal()
                lead.letGo()
                woken.wait()
                lead.take()
                let hasOvertaken = isDone.load(ordering: .acquiring)
                #expect(!hasOvertaken)
            }
        }
        let count = turns.load(ordering: .relaxed)
        #expect(count == 1)
    }
}
