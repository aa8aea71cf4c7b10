import ConfluxProtocol
import ConfluxVocabulary
import Foundation
import Spawning
import Synchronization

/// Observers that read the log from its first entry again and again, all on one thread.
///
/// Every reading must get the same bytes for the same entries, without gaps, and must find the
/// same damage.
final class LogReaders: Sendable {
    /// What all readers found.
    struct Report: Sendable {
        /// How often the log was read to its end.
        var readings = 0
        var fetches = 0
        var welcomes = 0
        /// The damage that every reading found.
        var damage: Damage?
    }

    private enum Goal {
        case goOn
        /// Each reader ends with its first reading that gets past this entry.
        case through(UInt64)
        case stop
    }

    private struct Reader {
        let nonce = Nonce.random()
        /// The number of the last hello, which the reader repeats until it is answered.
        var hello: UInt64 = 1
        var isWelcome = false
        var request: UInt64 = 0
        var speaker: Speaker?
        var acknowledged: UInt64 = 0
        var askedAt = ContinuousClock.now
        /// The next entry to read.
        var next = SequenceNumber(1)
        var epoch: Epoch?
        var metDamage = false
        var isDone = false
    }

    /// A commit, as the first reader received it.
    private struct Known {
        let hash: Int
        let last: SequenceNumber
        let epoch: Epoch
        let predecessor: Epoch
    }

    /// The data that only the reading thread uses.
    private struct Work {
        let crowd: RawCrowd
        var readers: [Reader]
        var known: [SequenceNumber: Known] = [:]
        var report = Report()
    }

    private static let fetchBytes: UInt32 = 256 << 10
    private static let askAgainAfter = Duration.seconds(1)
    private let goal = Mutex(Goal.goOn)

    /// Lets each reader read to the end of the log, and at least through this entry. Then the reader ends.
    func finish(through last: UInt64) { goal.withLock { $0 = .through(last) } }

    /// Ends all readers at once.
    func stop() { goal.withLock { $0 = .stop } }

    /// Reads until ``finish(through:)`` or ``stop()`` is called.
    ///
    /// - Parameters:
    ///   - count: How many readers there are.
    ///   - address: The sequencer's address.
    ///   - silenceMax: How long all readers together may get no answer.
    /// - Returns: What they read.
    /// - Throws: ``Failure`` if a reading is wrong, or no answer arrives in time.
    func run(_ count: Int, at address: String, silenceMax: Duration) async throws -> Report {
        try await onThread {
            let crowd = try RawCrowd(count)
            try crowd.connect(to: address)
            var work = Work(
                crowd: crowd, readers: (0..<count).map { _ in Reader() })
            for index in 0..<count { self.greet(index, &work) }
            var heardAt = ContinuousClock.now
            while work.readers.contains(where: { !$0.isDone }) {
                if case .stop = self.goal.withLock({ $0 }) { break }
                let heard = try crowd.hear(within: .milliseconds(100))
                for (index, frame) in heard { try self.take(frame[...], index, &work) }
                let now = ContinuousClock.now
                if !heard.isEmpty { heardAt = now }
                guard now - heardAt < silenceMax else {
                    throw Failure("no reader was answered for \(silenceMax)")
                }
                for index in 0..<count
                where !work.readers[index].isDone
                    && now - work.readers[index].askedAt > Self.askAgainAfter
                {
                    self.greet(index, &work)
                }
            }
            return work.report
        }
    }

    // MARK: One reader

    private func greet(_ index: Int, _ work: inout Work) {
        if work.readers[index].isWelcome { work.readers[index].hello += 1 }
        work.readers[index].isWelcome = false
        work.readers[index].askedAt = .now
        let reader = work.readers[index]
        let hello = Hello(
            request: reader.hello, nonce: reader.nonce, name: nil, role: .observer)
        work.crowd.send(Frame.encode(.hello(hello), by: .unwelcomed), by: index)
    }

    private func fetch(_ index: Int, _ work: inout Work) {
        work.readers[index].request += 1
        work.readers[index].askedAt = .now
        let reader = work.readers[index]
        guard let speaker = reader.speaker else { return }
        let fetch = Fetch(
            request: reader.request, from: reader.next, limitBytes: Self.fetchBytes,
            acknowledged: reader.acknowledged)
        work.crowd.send(Frame.encode(.fetch(fetch), by: speaker), by: index)
        work.report.fetches += 1
    }

    private func take(_ frame: Bytes, _ index: Int, _ work: inout Work) throws {
        switch try Frame.decodeSequencerMessage(frame) {
        case .welcome(let welcome)
        where welcome.request == work.readers[index].hello && !work.readers[index].isWelcome:
            work.report.welcomes += 1
            work.readers[index].isWelcome = true
            work.readers[index].acknowledged = 0
            work.readers[index].speaker = Speaker(
                epoch: try Frame.header(of: frame).epoch, session: welcome.incarnation)
            fetch(index, &work)
        case .entries(let entries) where entries.request == work.readers[index].request:
            work.readers[index].acknowledged = entries.deliveryTag
            try take(entries, index, &work)
            if !work.readers[index].isDone { fetch(index, &work) }
        case .bye(let bye) where bye.code == .rejoin: greet(index, &work)
        case .bye(let bye): throw Failure("reader \(index): \(bye)")
        // An answer to an earlier request.
        default: break
        }
    }

    private func take(_ entries: Entries, _ index: Int, _ work: inout Work) throws {
        let next = work.readers[index].next
        if let damage = entries.damage {
            guard damage.first == next, entries.commits.isEmpty,
                damage == work.report.damage ?? damage, !damage.message.isEmpty
            else { throw Failure("reader \(index) met \(damage) at entry \(next)") }
            work.report.damage = damage
            work.readers[index].metDamage = true
            work.readers[index].next = damage.last.next
            work.readers[index].epoch = nil
        } else if entries.commits.isEmpty, next <= entries.last {
            throw Failure("reader \(index) got nothing from entry \(next) on: \(entries.floor)")
        }
        for body in entries.commits { try read(body, index, &work) }
        if work.readers[index].next > entries.last { try end(index, &work) }
    }

    private func read(_ body: Bytes, _ index: Int, _ work: inout Work) throws {
        let next = work.readers[index].next
        let hash = body.withUnsafeBytes { bytes in
            var hasher = Hasher()
            hasher.combine(bytes: bytes)
            return hasher.finalize()
        }
        if work.known[next] == nil {
            let commit = try Commit.decode(body: body)
            guard commit.first == next else {
                throw Failure("reader \(index) got \(commit.first) instead of entry \(next)")
            }
            work.known[next] = Known(
                hash: hash, last: commit.last, epoch: commit.epoch,
                predecessor: commit.predecessor)
        }
        guard let known = work.known[next], known.hash == hash else {
            throw Failure("reader \(index) got other bytes of entry \(next)")
        }
        if let epoch = work.readers[index].epoch, epoch != known.predecessor {
            throw Failure("entry \(next) follows \(known.predecessor), not \(epoch)")
        }
        work.readers[index].next = known.last.next
        work.readers[index].epoch = known.epoch
    }

    /// Ends a reading. Then the reader is done, or starts from the first entry again.
    private func end(_ index: Int, _ work: inout Work) throws {
        guard work.readers[index].metDamage else {
            throw Failure("reader \(index) was not told of what can't be read")
        }
        work.report.readings += 1
        if case .through(let last) = goal.withLock({ $0 }),
            work.readers[index].next.rawValue > last
        {
            work.readers[index].isDone = true
        }
        work.readers[index].next = SequenceNumber(1)
        work.readers[index].epoch = nil
        work.readers[index].metDamage = false
    }
}
