/// How figures grow with one quantity: points for one or more rivals. `script/figures/generate` finds them by the title.
struct Curve {
    /// One line of the picture.
    struct Series {
        let name: String
        /// The measurements at each value of the quantity, one for each round.
        var points: [(x: Double, values: [Double])] = []

        mutating func add(_ value: Double, at x: Double) {
            if let place = points.firstIndex(where: { $0.x == x }) {
                points[place].values.append(value)
            } else {
                points.append((x, [value]))
            }
        }
    }

    let title: String
    /// The quantity that grows, and its unit.
    let quantity: String
    /// The measured figure, and its unit.
    let figure: String
    private(set) var series: [Series] = []

    init(_ title: String, over quantity: String, _ figure: String) {
        self.title = title
        self.quantity = quantity
        self.figure = figure
    }

    /// Adds the measurement of one round.
    mutating func add(_ value: Double, of series: String, at x: Int) {
        if !self.series.contains(where: { $0.name == series }) {
            self.series.append(Series(name: series))
        }
        for place in self.series.indices where self.series[place].name == series {
            self.series[place].add(value, at: Double(x))
        }
    }

    /// The points as rows of figures.
    var rows: [Row] {
        series.flatMap { series in
            series.points.map {
                Row(
                    "growth", "\(title): \(series.name), \(Int($0.x)) \(quantity)", figure,
                    alone: $0.values)
            }
        }
    }
}
