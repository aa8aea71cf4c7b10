import Conflux
import Foundation
import Testing

struct TimestampDateTests {
    @Test func `a timestamp becomes a date, and a date a timestamp`() {
        #expect(Timestamp(0).date == Date(timeIntervalSince1970: 0))
        #expect(Timestamp(1_500_000_000).date == Date(timeIntervalSince1970: 1.5))
        #expect(Timestamp(-1_500_000_000).date == Date(timeIntervalSince1970: -1.5))
        #expect(Timestamp(Date(timeIntervalSince1970: -1.5)) == Timestamp(-1_500_000_000))
        #expect(
            Timestamp(Date(timeIntervalSinceReferenceDate: 0)).rawValue == 978_307_200_000_000_000)
    }

    @Test func `a date survives a round trip, and a timestamp loses only its last digits`() {
        var random = SplitMix64(seed: 7)
        for _ in 0..<1_000 {
            let interval = Double.random(in: 100_000_000...4_000_000_000, using: &random)
            let date = Date(timeIntervalSinceReferenceDate: interval)
            #expect(Timestamp(date).date == date)
            let timestamp = Timestamp(
                Int64.random(in: 0...2_000_000_000_000_000_000, using: &random))
            let difference = Timestamp(timestamp.date).rawValue - timestamp.rawValue
            #expect(abs(difference) < 250)
        }
    }

    @Test func `a date beyond all timestamps becomes the nearest one`() {
        #expect(Timestamp(.distantFuture) == Timestamp(.max))
        #expect(Timestamp(.distantPast) == Timestamp(.min))
        for timestamp in [Timestamp(.max), Timestamp(.min)] {
            #expect(
                abs(Timestamp(timestamp.date).rawValue.distance(to: timestamp.rawValue))
                    < 2_000_000_000)
        }
    }
}
