import ConfluxZeroMQ
import Testing

/// When a thread stops polling because another one needs its processor.
struct ContentionTests {
    private let long = Contention.yieldMax + .microseconds(1)

    @Test func `short yields change nothing`() {
        var contention = Contention()
        for step in 1...1_000 {
            let begun = Contention.yieldMax * step
            let isLong = contention.noteYield(from: begun, to: begun + Contention.yieldMax)
            #expect(!isLong)
            #expect(!contention.isBusy(at: begun + Contention.yieldMax))
        }
    }

    @Test func `two long yields in short succession are contention, for a while`() {
        var contention = Contention()
        let first = Duration.seconds(5)
        let second = first + Contention.interval
        let isFirstLong = contention.noteYield(from: first - long, to: first)
        #expect(isFirstLong && !contention.isBusy(at: first))
        let isSecondLong = contention.noteYield(from: second - long, to: second)
        #expect(isSecondLong)
        #expect(contention.isBusy(at: second))
        #expect(contention.isBusy(at: second + Contention.pause - .nanoseconds(1)))
        #expect(!contention.isBusy(at: second + Contention.pause))
    }

    @Test func `single long yields are none`() {
        var contention = Contention()
        for step in 1...100 {
            let ended = (Contention.interval + .nanoseconds(1)) * step + .seconds(1)
            let isLong = contention.noteYield(from: ended - long, to: ended)
            #expect(isLong && !contention.isBusy(at: ended))
        }
    }
}
