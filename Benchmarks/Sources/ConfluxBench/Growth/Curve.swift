/// How figures grow with one quantity: points of one or more rivals, for one picture.
struct Curve {
    /// One line of the picture.
    struct Series {
        let name: String
        /// What was measured at each value of the quantity, one value a round.
        var points: [(x: Double, values: [Double])] = []

        /// The median of each point.
        var medians: [(x: Double, y: Double)] {
            points.map { (x: $0.x, y: Spread($0.values).median) }
        }

        mutating func add(_ value: Double, at x: Double) {
            if let place = points.firstIndex(where: { $0.x == x }) {
                points[place].values.append(value)
            } else {
                points.append((x, [value]))
            }
        }
    }

    /// The name of the file that has the picture.
    let name: String
    let title: String
    /// What grows, and its unit.
    let quantity: String
    /// What is measured, and its unit.
    let figure: String
    private(set) var series: [Series] = []

    init(_ name: String, _ title: String, over quantity: String, _ figure: String) {
        self.name = name
        self.title = title
        self.quantity = quantity
        self.figure = figure
    }

    /// Adds what one round measured.
    mutating func add(_ value: Double, of series: String, at x: Int) {
        if !self.series.contains(where: { $0.name == series }) {
            self.series.append(Series(name: series))
        }
        for place in self.series.indices where self.series[place].name == series {
            self.series[place].add(value, at: Double(x))
        }
    }

    /// Its points as rows of figures.
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
