import ConfluxVocabulary
import Testing

/// Durations, counted in fixed buckets.
struct LatencyHistogramTests {
    @Test func `a duration equal to a bound is in its bucket, and a longer one in the next`() {
        for (index, bound) in LatencyHistogram.bounds.enumerated() {
            var histogram = LatencyHistogram()
            histogram.record(bound)
            histogram.record(bound + .nanoseconds(1), count: 2)
            #expect(histogram.counts[index] == 1)
            #expect(histogram.counts[index + 1] == 2)
            #expect(histogram.count == 3)
            #expect(histogram.sum == bound * 3 + .nanoseconds(2))
        }
    }

    @Test func `a negative duration counts as zero`() {
        var histogram = LatencyHistogram()
        histogram.record(.seconds(-5))
        #expect(histogram.counts[0] == 1)
        #expect(histogram.sum == .zero)
    }

    @Test func `bounds ascend`() {
        #expect(LatencyHistogram.bounds == Set(LatencyHistogram.bounds).sorted())
        #expect(LatencyHistogram().counts.count == LatencyHistogram.bounds.count + 1)
    }
}
