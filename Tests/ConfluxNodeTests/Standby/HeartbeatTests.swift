import ConfluxLog
import ConfluxVocabulary
import ConfluxZeroMQ
import Foundation
import Synchronization
import Testing

@testable import ConfluxSequencer

/// The thread that announces that a term serves, and when it gives the term up.
struct HeartbeatTests {
    private let epoch = Epoch(7)
    private let limit = Duration.seconds(30)

    /// A heartbeat with the answer that a test wants, which counts its calls.
    private final class Scripted: TermHeartbeat, Sendable {
        private let failure: LogError?
        let renewals = Mutex<[UInt64]>([])
        let said = DispatchSemaphore(value: 0)

        init(failing failure: LogError? = nil) { self.failure = failure }

        func say(_ word: ServingWord) throws(LogError) -> [StandbyWord] {
            renewals.withLock { $0.append(word.renewal) }
            said.signal()
            if let failure { throw failure }
            return []
        }
    }

    /// A running heartbeat's thread, and the ends that it reported.
    private final class Running: Sendable {
        let jobs: Mailbox<HeartbeatJob>
        let signs = TermSigns()
        let ends = Mutex<[SequencerEnd]>([])
        let ended = DispatchSemaphore(value: 0)
        private let thread = Mutex<NamedThread?>(nil)

        init() throws {
            jobs = Mailbox(capacity: 16, waker: try Waker())
            signs.turn(at: Moment.now.monotonic)
            let heartbeat = Handover(
                HeartbeatThread(jobs: jobs, address: "tcp://a:1", signs: signs) {
                    [weak self] news, _ in
                    guard let self, case .deposed(let end) = news else { return }
                    ends.withLock { $0.append(end) }
                    ended.signal()
                })
            let started = try NamedThread("heartbeat", stackBytes: 1 << 20) {
                heartbeat.value.run()
            }
            thread.withLock { $0 = started }
        }

        func stop() {
            jobs.post(.close)
            thread.withLock { $0 }?.join()
        }
    }

    private func wait(for semaphore: DispatchSemaphore) -> Bool {
        semaphore.wait(timeout: .now() + limit / .seconds(1)) == .success
    }

    @Test func `a term's end is reported until the term ends`() throws {
        let running = try Running()
        defer { running.stop() }
        let scripted = Scripted(failing: LogError(.superseded, "Another one claimed the log."))
        running.jobs.post(.begin(Handover(scripted), epoch))
        for _ in 0..<2 { #expect(wait(for: running.ended)) }
        #expect(running.ends.withLock { $0.allSatisfy { $0 == .superseded } })
        running.jobs.post(.fall)
    }

    @Test func `a term whose appends succeed does not end because its heartbeat fails`()
        throws
    {
        let running = try Running()
        defer { running.stop() }
        running.signs.turn(at: Moment.now.monotonic + .seconds(3_600))
        running.signs.confirm(at: Moment.now.monotonic + .seconds(3_600))
        let scripted = Scripted(failing: LogError(.unreachable, "Nobody answers."))
        running.jobs.post(.begin(Handover(scripted), epoch))
        let begun = ContinuousClock.now
        // Longer than the time after which the term would end without appends.
        while ContinuousClock.now - begun < .seconds(3) { #expect(wait(for: scripted.said)) }
        #expect(running.ends.withLock { $0.isEmpty })
        running.signs.confirm(at: .zero)
        #expect(wait(for: running.ended))
        guard case .logFailed? = running.ends.withLock({ $0.first }) else {
            Issue.record("it is not said that the log failed")
            return
        }
    }

    @Test func `a sequencer whose serving thread hangs is silent`() throws {
        let running = try Running()
        defer { running.stop() }
        running.signs.turn(at: Moment.now.monotonic - .seconds(60))
        let hanging = Scripted()
        let well = Scripted()
        // The next jobs are taken after the turn in which it would have announced it.
        for job in [HeartbeatJob.begin(Handover(hanging), epoch), .fall] {
            running.jobs.post(job)
            let deadline = ContinuousClock.now + limit
            while running.jobs.count > 0, ContinuousClock.now < deadline { sched_yield() }
        }
        running.signs.turn(at: Moment.now.monotonic)
        running.jobs.post(.begin(Handover(well), epoch))
        #expect(wait(for: well.said))
        #expect(well.renewals.withLock { $0.first } == 1)
        #expect(hanging.renewals.withLock { $0.isEmpty })
    }
}
