import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

struct SubmissionsTests {
    private func submissions(_ batches: [Int]) -> Submissions {
        let targets = ["list", "tally"].map {
            BatchTarget(target: Target($0)!, schemaVersion: 1, coding: .json)
        }
        var submissions = Submissions()
        for count in batches {
            var builder = BatchBuilder()
            for place in 0..<count { builder.append(target: targets[place % 2], payload: [1]) }
            submissions.add(submissions.batch(of: &builder, isAtomic: false))
        }
        return submissions
    }

    @Test func `no batch is added twice`() async {
        await #expect(processExitsWith: .failure) {
            let target = BatchTarget(target: Target("list")!, schemaVersion: 1, coding: .json)
            var submissions = Submissions()
            var builder = BatchBuilder()
            builder.append(target: target, payload: [1])
            let batch = submissions.batch(of: &builder, isAtomic: false)
            submissions.add(batch)
            submissions.add(batch)
        }
    }

    @Test func `only actions are withdrawn at once`() {
        var submissions = submissions([3, 3])
        #expect(submissions.next(at: .zero)?.count == 3)
        let urgent = submissions.withdraw(RangeSet(2..<6))
        #expect(urgent.map(\.firstCounter) == [2])
        #expect(urgent.map(\.count) == [2])
        // The other batch becomes void when its turn comes.
        #expect(submissions.next(at: .zero)?.kind == .void)
        #expect(submissions.next(at: .zero)?.firstCounter == 6)
        #expect(submissions.next(at: .zero) == nil)
        #expect(submissions.withdraw(RangeSet(2..<6)).isEmpty)
    }

    @Test func `bytes are counted part by part, and released with the outcomes`() {
        var submissions = submissions([5, 2])
        _ = submissions.withdraw(RangeSet([2..<3, 4..<5]))
        submissions.rewind(past: 0, knownThrough: 0)
        var bytes = 0
        while let batch = submissions.next(at: .zero) { bytes += batch.encoded.count }
        #expect(submissions.unsettledBytes == bytes)
        let isNext = submissions.settle(from: 1, count: 7)
        #expect(isNext && submissions.unsettledBytes == 0 && !submissions.isAwaiting)
    }

    @Test func `what was settled of a batch is not sent again once its rest is withdrawn`() {
        var submissions = submissions([3, 1])
        _ = submissions.next(at: .zero)
        let isNext = submissions.settle(from: 1, count: 2)
        #expect(isNext)
        _ = submissions.withdraw(RangeSet(3..<4))
        submissions.rewind(past: 0, knownThrough: 2)
        #expect(submissions.next(at: .zero)?.firstCounter == 3)
        #expect(throws: Never.self) { try submissions.checkInvariants() }
    }

    @Test
    func `known outcomes that were not sent are void for a sequencer that has forgotten them`()
        throws
    {
        var submissions = Submissions(resumingAfter: 2)
        for count in [3, 4] {
            var builder = BatchBuilder()
            let target = BatchTarget(
                target: try #require(Target("list/*")), schemaVersion: 1, coding: .json)
            for _ in 0..<count { builder.append(target: target, payload: [1]) }
            submissions.add(submissions.batch(of: &builder, isAtomic: false))
        }
        submissions.addVoid(2)
        _ = submissions.settle(from: 3, count: 5)
        submissions.tell(through: 4)

        // The sequencer knows what was reported. All other known outcomes are void, and are sent first.
        submissions.rewind(past: 0, knownThrough: 4)
        var sent: [Batch] = []
        while let batch = submissions.next(at: .zero) { sent.append(batch) }
        #expect(sent.map(\.kind) == [.void, .separate, .void])
        #expect(sent.map(\.firstCounter) == [5, 8, 10])
        #expect(sent.map(\.lastCounter) == [7, 9, 11])
        #expect(sent.allSatisfy { $0.settled < $0.firstCounter })

        // After it was discarded, it is sent again from the expected counter.
        submissions.rewind(to: 6, isFull: false, at: .zero, first: .seconds(1), most: .seconds(1))
        #expect(submissions.isSendDue)
        let again = submissions.next(at: .seconds(1))
        #expect(again?.kind == .void && again?.firstCounter == 6 && again?.lastCounter == 7)

        // The sequencer knows everything, so only the former void ones are void.
        submissions.rewind(past: 0, knownThrough: 9)
        #expect(submissions.next(at: .zero)?.firstCounter == 8)
    }

    @Test func `settled actions are not withdrawn, even within a batch`() {
        var submissions = submissions([4])
        _ = submissions.next(at: .zero)
        _ = submissions.settle(from: 1, count: 2)
        let urgent = submissions.withdraw(RangeSet(1..<4))
        #expect(urgent.map(\.firstCounter) == [3])
        #expect(urgent.first?.settled == 2)
    }

    @Test func `a batch that contains the expected counter is sent again`() {
        var submissions = submissions([5, 3])
        while submissions.next(at: .zero) != nil {}
        // A restarted sequencer knows that 1 and 2 are settled, and had no room for the batch.
        submissions.rewind(to: 3, isFull: false, at: .zero, first: .seconds(1), most: .seconds(1))
        #expect(submissions.next(at: .seconds(1))?.firstCounter == 1)
        #expect(submissions.next(at: .seconds(1))?.firstCounter == 6)
    }

    @Test func `after a batch without room only a probe is sent until an outcome comes`() {
        var submissions = submissions([2, 2, 2])
        while submissions.next(at: .zero) != nil {}
        for _ in 0..<3 {
            submissions.rewind(
                to: 3, isFull: true, at: .zero, first: .seconds(1), most: .seconds(1))
            #expect(submissions.next(at: .seconds(1))?.firstCounter == 3)
            #expect(submissions.next(at: .seconds(1)) == nil)
            #expect(submissions.isSendDue)
        }
        let isNext = submissions.settle(from: 1, count: 2)
        #expect(isNext)
        #expect(submissions.next(at: .seconds(1))?.firstCounter == 5)
        #expect(submissions.next(at: .seconds(1)) == nil)
        // A probe that was lost with its connection is sent again with all others.
        submissions.rewind(to: 3, isFull: true, at: .zero, first: .seconds(1), most: .seconds(1))
        submissions.rewind(past: 2, knownThrough: 2)
        #expect(submissions.next(at: .zero)?.firstCounter == 3)
        #expect(submissions.next(at: .zero)?.firstCounter == 5)
    }
}
