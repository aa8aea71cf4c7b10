import ConfluxVocabulary

/// A metric with its samples, in the model of Prometheus.
package struct MetricFamily: Sendable {
    /// What a metric counts or measures.
    package enum Kind: String, Sendable {
        case counter, gauge, histogram
    }

    /// One value, with the labels that distinguish it.
    package struct Sample: Sendable {
        fileprivate enum Value: Sendable {
            case number(Double)
            case whole(UInt64)
            case histogram(LatencyHistogram)
        }

        fileprivate let labels: [(name: String, value: String)]
        fileprivate let value: Value
    }

    /// The metric's name.
    package let name: String
    /// The kind of metric.
    package let kind: Kind
    /// What it means, in one line.
    package let help: String
    private let samples: [Sample]

    private init(_ name: String, _ kind: Kind, _ help: String, _ samples: [Sample]) {
        (self.name, self.kind, self.help, self.samples) = (name, kind, help, samples)
    }

    /// A number that only ever rises, with one sample.
    package static func counter(_ name: String, _ help: String, _ value: UInt64) -> MetricFamily {
        counter(name, help, label: "", [("", value)])
    }

    /// A number that only ever rises, with a sample for each value of a label.
    package static func counter(
        _ name: String, _ help: String, label: String, _ values: [(label: String, value: UInt64)]
    ) -> MetricFamily {
        let samples = values.map {
            Sample(labels: label.isEmpty ? [] : [(label, $0.label)], value: .whole($0.value))
        }
        return MetricFamily(name, .counter, help, samples)
    }

    /// A number that rises and falls; nil if it is not known.
    package static func gauge(_ name: String, _ help: String, _ value: Double?) -> MetricFamily {
        gauge(name, help, value.map { [([], $0)] } ?? [])
    }

    /// A whole number that rises and falls.
    package static func gauge(_ name: String, _ help: String, _ value: UInt64) -> MetricFamily {
        MetricFamily(name, .gauge, help, [Sample(labels: [], value: .whole(value))])
    }

    /// A number of things.
    package static func gauge(_ name: String, _ help: String, _ value: Int) -> MetricFamily {
        gauge(name, help, UInt64(clamping: value))
    }

    /// A condition: 1 if it holds, otherwise 0.
    package static func gauge(_ name: String, _ help: String, _ value: Bool) -> MetricFamily {
        gauge(name, help, value ? 1 as UInt64 : 0)
    }

    /// Numbers that rise and fall, each with its own labels.
    package static func gauge(
        _ name: String, _ help: String,
        _ values: [(labels: [(name: String, value: String)], value: Double)]
    ) -> MetricFamily {
        let samples = values.map { Sample(labels: $0.labels, value: .number($0.value)) }
        return MetricFamily(name, .gauge, help, samples)
    }

    /// How long things took.
    package static func histogram(
        _ name: String, _ help: String, _ value: LatencyHistogram
    ) -> MetricFamily {
        MetricFamily(name, .histogram, help, [Sample(labels: [], value: .histogram(value))])
    }
}

extension MetricFamily {
    /// The text format of Prometheus, version 0.0.4. A metric without samples is left out.
    ///
    /// - Parameter families: The metrics. Their names MUST be distinct.
    /// - Returns: The text, which ends with a line feed.
    package static func text(_ families: [MetricFamily]) -> String {
        var text = ""
        for family in families where !family.samples.isEmpty {
            text += "# HELP \(family.name) \(escape(family.help, quotes: false))\n"
            text += "# TYPE \(family.name) \(family.kind.rawValue)\n"
            for sample in family.samples { family.write(sample, to: &text) }
        }
        return text
    }

    private func write(_ sample: Sample, to text: inout String) {
        func line(_ suffix: String, _ labels: [(name: String, value: String)], _ value: String) {
            let words = labels.map { "\($0.name)=\"\(Self.escape($0.value, quotes: true))\"" }
            let braces = words.isEmpty ? "" : "{\(words.joined(separator: ","))}"
            text += "\(name)\(suffix)\(braces) \(value)\n"
        }
        switch sample.value {
        case .number(let number): line("", sample.labels, Self.words(number))
        case .whole(let number): line("", sample.labels, "\(number)")
        case .histogram(let histogram):
            var count: UInt64 = 0
            for (bound, inBucket) in zip(LatencyHistogram.bounds, histogram.counts) {
                count += inBucket
                line("_bucket", sample.labels + [("le", Self.words(bound.inSeconds))], "\(count)")
            }
            line("_bucket", sample.labels + [("le", "+Inf")], "\(histogram.count)")
            line("_sum", sample.labels, Self.words(histogram.sum.inSeconds))
            line("_count", sample.labels, "\(histogram.count)")
        }
    }

    /// The number as text. Whole numbers have no fraction.
    private static func words(_ number: Double) -> String {
        if number.isNaN { return "NaN" }
        if number.isInfinite { return number > 0 ? "+Inf" : "-Inf" }
        return Int64(exactly: number).map { "\($0)" } ?? "\(number)"
    }

    private static func escape(_ text: String, quotes: Bool) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\"" where quotes: escaped += "\\\""
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }
}

extension Duration {
    /// The duration in seconds, the unit of metrics.
    package var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}

extension Timestamp {
    /// Seconds since 1970 UTC, the unit of metrics.
    package var inSeconds: Double { Double(rawValue) / 1e9 }
}
