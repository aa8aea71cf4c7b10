import Foundation

/// A new replica applies the whole log, compared with decoding and applying without a node, and with the same for the past of
/// a store that is open.
struct ReplayWorkload {
    let count: Int

    private static let stateBytes = 1_000_000

    func measure(_ settings: Settings) throws -> [Row] {
        try Cluster.run(in: settings.folder) { cluster in
            settings.note("replay, writing")
            let whole = try History(
                .withoutSnapshots, log: "log", stateBytes: Self.stateBytes, in: cluster)
            try whole.write(to: count)
            let decoder = try cluster.start(.decoder)
            var ours: [Double] = []
            var past: [Double] = []
            var theirs: [DecoderKind: [Double]] = [:]
            func rate(_ nanoseconds: UInt64) -> Double {
                Double(count) / (Double(nanoseconds) / 1e9)
            }
            for round in 0..<settings.rounds {
                settings.note("replay, round \(round + 1)")
                for side in settings.sides(of: round) {
                    switch side {
                    case .conflux:
                        ours.append(rate(try whole.join(in: cluster)))
                        past.append(rate(try whole.writer.time(.past(History.name))))
                    case .partner:
                        for kind in [DecoderKind.canonical, .foundation] {
                            let order = Order.decodeActions(
                                count: count, rows: whole.rows, with: kind)
                            theirs[kind, default: []].append(rate(try decoder.time(order)))
                        }
                    }
                }
            }
            func row(_ name: String, _ kind: DecoderKind) -> Row {
                Row("replay", name, "actions/s", ours, theirs[kind] ?? [], isHigherBetter: true)
            }
            return [
                row("\(count) entries; partner: decoding and applying alone", .canonical),
                row("the same; partner: the same by Foundation's decoder", .foundation),
                Row(
                    "replay", "a state of the past; partner: a new replica", "actions/s",
                    past, ours, isHigherBetter: true),
            ]
        }
    }
}
