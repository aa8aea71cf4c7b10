import ConfluxVocabulary
import Testing

@testable import ConfluxMonitoring

/// The text format of Prometheus.
struct TextTests {
    @Test func `counters and gauges have a line for each sample, after their help`() {
        let text = MetricFamily.text([
            .counter("things_total", "Things.", 12),
            .counter("errors_total", "Errors.", label: "reason", [("a", 1), ("b", 0)]),
            .gauge("level", "A level.", 0.25),
            .gauge("isOn", "Whether it is on.", true),
            .gauge("big", "Big.", UInt64.max),
        ])
        #expect(
            text == """
                # HELP things_total Things.
                # TYPE things_total counter
                things_total 12
                # HELP errors_total Errors.
                # TYPE errors_total counter
                errors_total{reason="a"} 1
                errors_total{reason="b"} 0
                # HELP level A level.
                # TYPE level gauge
                level 0.25
                # HELP isOn Whether it is on.
                # TYPE isOn gauge
                isOn 1
                # HELP big Big.
                # TYPE big gauge
                big 18446744073709551615

                """)
    }

    @Test func `a metric without samples is left out`() {
        let nothing: Double? = nil
        #expect(MetricFamily.text([.gauge("level", "A level.", nothing)]) == "")
        #expect(MetricFamily.text([.gauge("level", "A level.", [])]) == "")
    }

    @Test func `characters that would end a line or a label are escaped`() {
        let text = MetricFamily.text([
            .gauge("level", "One\nline, a \\ and a \".", [([("node", "a\"b\\c\nd")], 1)])
        ])
        #expect(
            text == #"""
                # HELP level One\nline, a \\ and a ".
                # TYPE level gauge
                level{node="a\"b\\c\nd"} 1

                """#)
    }

    @Test func `a histogram's buckets include those below, and the last has all`() {
        var histogram = LatencyHistogram()
        histogram.record(.microseconds(100))
        histogram.record(.milliseconds(3), count: 2)
        histogram.record(.seconds(100))
        let text = MetricFamily.text([.histogram("took_seconds", "How long.", histogram)])
        let lines = text.split(separator: "\n")
        #expect(lines.count == 2 + LatencyHistogram.bounds.count + 3)
        for line in [
            #"took_seconds_bucket{le="0.0001"} 1"#, #"took_seconds_bucket{le="0.0025"} 1"#,
            #"took_seconds_bucket{le="0.005"} 3"#, #"took_seconds_bucket{le="60"} 3"#,
            #"took_seconds_bucket{le="+Inf"} 4"#, "took_seconds_sum 100.0061",
            "took_seconds_count 4",
        ] {
            #expect(lines.contains(Substring(line)), "\(line)")
        }
    }
}

/// The figures of the process.
struct ProcessFigureTests {
    @Test func `memory, files and free space are known`() throws {
        #expect(try #require(ProcessFigures.residentBytes) > 1 << 20)
        #expect(try #require(ProcessFigures.freeBytes(ofFolder: "/")) > 0)
        #expect(ProcessFigures.fileBytes(inFolder: "/no/such/folder") == nil)
        #expect(ProcessFigures.freeBytes(ofFolder: "/no/such/folder") == nil)
    }
}
