import Foundation

/// A curve as a picture: SVG with two logarithmic axes, for light and dark pages.
struct CurveDrawing {
    private let curve: Curve
    private let x: Axis
    private let y: Axis

    private static let width = 720.0
    private static let height = 400.0
    /// The places of the axes.
    private static let (left, right, top, bottom) = (80.0, 500.0, 50.0, 340.0)

    /// An axis with a logarithmic scale.
    private struct Axis {
        let low: Double
        let high: Double
        let from: Double
        let to: Double

        /// Covers the values. Both ends are 1, 2 or 5 times a power of ten.
        init(_ values: [Double], from: Double, to: Double) {
            let (least, most) = (values.min() ?? 1, values.max() ?? 1)
            low = Self.rounded(least, down: true)
            high = Swift.max(Self.rounded(most, down: false), low * 10)
            self.from = from
            self.to = to
        }

        /// The next 1, 2 or 5 times a power of ten.
        private static func rounded(_ value: Double, down: Bool) -> Double {
            let power = pow(10, floor(log10(value)))
            let steps = [1.0, 2, 5, 10].map { $0 * power }
            return (down ? steps.last { $0 <= value } : steps.first { $0 >= value }) ?? value
        }

        func place(_ value: Double) -> Double {
            from + (to - from) * log10(value / low) / log10(high / low)
        }

        /// The values that have a line and a number.
        var marks: [Double] {
            var marks: [Double] = []
            var power = pow(10, floor(log10(low)))
            while power <= high * 1.001 {
                let steps = log10(high / low) > 3 ? [1.0] : [1.0, 2, 5]
                marks += steps.map { $0 * power }
                power *= 10
            }
            return marks.filter { $0 >= low * 0.999 && $0 <= high * 1.001 }
        }
    }

    init(_ curve: Curve) {
        self.curve = curve
        let points = curve.series.flatMap(\.medians)
        x = Axis(points.map(\.x), from: Self.left, to: Self.right)
        y = Axis(points.map(\.y), from: Self.bottom, to: Self.top)
    }

    /// The whole file.
    var svg: String {
        let series = curve.series.enumerated().map { draw($1, number: $0) }
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Int(Self.width)) \
            \(Int(Self.height))" role="img" aria-label="\(Self.escaped(curve.title))">
            <style>
            svg { background: #ffffff; font: 12px sans-serif; }
            text { fill: #24292f; } .title { font-size: 15px; font-weight: bold; }
            .grid { stroke: #d0d7de; } .line { fill: none; stroke-width: 2; }
            @media (prefers-color-scheme: dark) {
            svg { background: #0d1117; } text { fill: #e6edf3; } .grid { stroke: #30363d; }
            }
            </style>
            \(Self.text(Self.left, 24, curve.title, "class=\"title\""))
            \((x.marks.map(vertical) + y.marks.map(horizontal)).joined(separator: "\n"))
            \(Self.text((Self.left + Self.right) / 2, Self.height - 20, curve.quantity, Self.middle))
            \(Self.text(Self.left, 42, curve.figure))
            \(series.joined(separator: "\n"))
            </svg>

            """
    }

    private static let middle = "text-anchor=\"middle\""
    /// Colours that everybody can tell apart, on light and on dark pages.
    private static let colours = [
        "#d1495b", "#3477c5", "#2f8f6b", "#b5831d", "#8a5cc2", "#6f7d8c", "#c2628f",
    ]

    private func vertical(_ mark: Double) -> String {
        let place = x.place(mark)
        return Self.line(place, Self.top, place, Self.bottom)
            + Self.text(place, Self.bottom + 18, Self.number(mark), Self.middle)
    }

    private func horizontal(_ mark: Double) -> String {
        let place = y.place(mark)
        return Self.line(Self.left, place, Self.right, place)
            + Self.text(Self.left - 8, place + 4, Self.number(mark), "text-anchor=\"end\"")
    }

    private func draw(_ series: Curve.Series, number: Int) -> String {
        let colour = Self.colours[number % Self.colours.count]
        let points = series.medians.map { (x.place($0.x), y.place($0.y)) }
        let way = points.map { "\(Self.short($0.0)),\(Self.short($0.1))" }.joined(separator: " ")
        let dots = points.map {
            "<circle cx=\"\(Self.short($0.0))\" cy=\"\(Self.short($0.1))\" r=\"3\" "
                + "fill=\"\(colour)\"/>"
        }
        let row = Self.top + 10 + Double(number) * 20
        return "<polyline class=\"line\" stroke=\"\(colour)\" points=\"\(way)\"/>"
            + dots.joined()
            + "<circle cx=\"\(Int(Self.right) + 20)\" cy=\"\(Self.short(row - 4))\" r=\"5\" "
            + "fill=\"\(colour)\"/>" + Self.text(Self.right + 32, row, series.name)
    }

    private static func line(_ x: Double, _ y: Double, _ toX: Double, _ toY: Double) -> String {
        "<line class=\"grid\" x1=\"\(short(x))\" y1=\"\(short(y))\" x2=\"\(short(toX))\" "
            + "y2=\"\(short(toY))\"/>"
    }

    private static func text(
        _ x: Double, _ y: Double, _ text: String, _ attributes: String = ""
    ) -> String {
        "<text x=\"\(short(x))\" y=\"\(short(y))\" \(attributes)>\(escaped(text))</text>"
    }

    private static func escaped(_ text: String) -> String {
        text.replacingOccurrences(of: "&", with: "&amp;")
            .replacingOccurrences(of: "<", with: "&lt;")
    }

    private static func short(_ place: Double) -> String { String(format: "%.1f", place) }

    private static func number(_ value: Double) -> String {
        switch value {
        case 1e6...: "\(trimmed(value / 1e6)) M"
        case 1e3...: "\(trimmed(value / 1e3)) k"
        default: trimmed(value)
        }
    }

    private static func trimmed(_ value: Double) -> String { String(format: "%g", value) }
}
