import ConfluxNode
import ConfluxWorker
import Foundation

/// What `conflux bench` measured.
struct BenchFigures: Sendable {
    let payloadBytes: Int
    /// The time from each dispatch to its receipt, with one action in flight.
    let single: [Duration]
    let streamCount: Int
    /// The time from the stream's first dispatch to its last receipt.
    let streamTime: Duration
    /// The time from dispatch to receipt, for some of the stream's actions.
    let streamSamples: [Duration]
    /// The most actions of the stream that waited for their receipts.
    let inFlight: Int

    private var streamRate: Double { Double(streamCount) / (streamTime / .seconds(1)) }

    // MARK: For programs

    /// All figures. Times are in microseconds; what was not measured is null.
    var fields: JSONFields {
        let stream: JSONFields = [
            "count": streamCount, "inFlight": inFlight, "perSecond": UInt64(streamRate),
        ]
        return [
            "payloadBytes": payloadBytes,
            "single": single.isEmpty
                ? JSONValue.null : Self.json(single, ["count": single.count]),
            "stream": streamCount == 0 ? JSONValue.null : Self.json(streamSamples, stream),
        ]
    }

    private static func json(_ times: [Duration], _ others: JSONFields) -> JSONValue {
        let sorted = times.sorted()
        func microseconds(_ time: Duration) -> UInt64 { UInt64(time / .microseconds(1)) }
        var fields = others
        for (name, share) in shares { fields[name] = microseconds(value(share, of: sorted)) }
        fields["histogram"] = buckets(sorted).map { bucket in
            JSONObject([
                "count": bucket.count, "from": microseconds(bucket.from),
                "to": microseconds(bucket.to),
            ])
        }
        return JSONObject(fields).json
    }

    // MARK: For people

    /// The printed lines, in 80 columns.
    func lines(of sequencer: String) -> [String] {
        var lines = ["sequencer: \(sequencer); \(payloadBytes) bytes an action"]
        if !single.isEmpty {
            lines += ["", "one in flight, \(single.count) actions: \(Self.summary(single))"]
            lines += Self.histogram(single)
        }
        if streamCount > 0 {
            lines += [
                "",
                "stream, \(streamCount) actions, at most \(inFlight) in flight: "
                    + "\(Int(streamRate)) a second",
                "receipts: \(Self.summary(streamSamples))",
            ]
            lines += Self.histogram(streamSamples)
        }
        return lines
    }

    private static func summary(_ times: [Duration]) -> String {
        let sorted = times.sorted()
        return shares.map { "\($0) \(text(value($1, of: sorted)))" }.joined(separator: ", ")
    }

    private static let barColumns = 50

    private static func histogram(_ times: [Duration]) -> [String] {
        let buckets = buckets(times.sorted())
        let most = buckets.map(\.count).max() ?? 1
        return buckets.map { bucket in
            let columns = (bucket.count * barColumns + most - 1) / most
            return "  \(padded("< \(text(bucket.to))", 11)) "
                + String(repeating: "#", count: columns)
                + " \(bucket.count)"
        }
    }

    private static func padded(_ text: String, _ columns: Int) -> String {
        String(repeating: " ", count: max(0, columns - text.count)) + text
    }

    /// A time with about three significant digits.
    private static func text(_ time: Duration) -> String {
        switch time {
        case ..<(.milliseconds(1)): String(format: "%.0f µs", time / .microseconds(1))
        case ..<(.seconds(1)): String(format: "%.3g ms", time / .milliseconds(1))
        default: String(format: "%.3g s", time / .seconds(1))
        }
    }

    // MARK: Ranks

    private static let shares = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)]

    private static func value(_ share: Double, of sorted: [Duration]) -> Duration {
        sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
    }

    private struct Bucket {
        let from: Duration
        let to: Duration
        var count = 0
    }

    /// The times in buckets, from the first that has a time to the last. Each bucket ends at twice its start.
    private static func buckets(_ sorted: [Duration]) -> [Bucket] {
        var buckets: [Bucket] = []
        var to = Duration.microseconds(1)
        for time in sorted {
            while time >= to {
                to *= 2
                if !buckets.isEmpty { buckets.append(Bucket(from: to / 2, to: to)) }
            }
            if buckets.isEmpty { buckets.append(Bucket(from: to / 2, to: to)) }
            buckets[buckets.count - 1].count += 1
        }
        return buckets
    }
}
