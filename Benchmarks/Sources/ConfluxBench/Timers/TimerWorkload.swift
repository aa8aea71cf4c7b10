import Foundation

/// How late timers fire, and what timers cost that do not fire yet.
///
/// A node sets timers whose times are spread over two seconds, or that are all due at one time. A timer is late by the
/// time from when it was due, by its own receipt, until this node's store has its action. The processor time is that
/// of a whole sequencer which nobody else uses, while its timers are hours away.
struct TimerWorkload {
    let count: Int
    let pendingCount: Int
    /// For how long an idle sequencer is watched.
    private static let idleSeconds: UInt32 = 10

    func measure(_ settings: Settings) throws -> [Row] {
        var rows: [Row] = []
        settings.note(
            """
            timers: late by is the time from when a timer was due, by its receipt, until an observer of the node's \
            store is told of its action. The processor time is a whole sequencer's over \(Self.idleSeconds) s, while \
            nobody is connected; half of the timers wait for a time of day.
            """)
        for isBurst in [false, true] {
            var late: [[UInt64]] = []
            for round in 0..<settings.rounds {
                settings.note("timers, \(isBurst ? "at one time" : "spread"), round \(round + 1)")
                late.append(try lateness(isBurst: isBurst, settings))
            }
            let what = isBurst ? "due at one time" : "spread over 2 s"
            rows += [(0.5, "p50"), (0.99, "p99"), (1, "max")].map { share, rank in
                Row(
                    "timers", "fsync, \(count) timers, \(what), late by, \(rank)", "ms",
                    alone: late.map { percentile(share, of: $0) / 1e6 })
            }
        }
        var used: [[Double]] = [[], []]
        for round in 0..<settings.rounds {
            settings.note("timers, idle, round \(round + 1)")
            for (place, count) in [pendingCount, 0].enumerated() {
                used[place].append(try idle(timers: count, settings))
            }
        }
        rows.append(
            Row(
                "timers",
                "processor time of an idle sequencer with \(pendingCount) timers; partner: with none",
                "ms/s", used[0], used[1]))
        return rows
    }

    private func lateness(isBurst: Bool, _ settings: Settings) throws -> [UInt64] {
        try Cluster.run(in: settings.folder) { cluster in
            let (sequencer, addresses) = try cluster.startSequencer(
                .conflux, .fsync, zeroedBytes: 0, subscribers: 1)
            let client = try cluster.start(
                .timers(at: Place(addresses[0]), count: count, isBurst: isBurst))
            try sequencer.awaitReady()
            try client.awaitReady()
            try client.go()
            guard case .times(let times) = try client.next(), times.count == count else {
                throw BenchError("the node told something else than how late its timers were")
            }
            return times.sorted()
        }
    }

    /// - Returns: Milliseconds of processor time in each second.
    private func idle(timers: Int, _ settings: Settings) throws -> Double {
        try Cluster.run(in: settings.folder) { cluster in
            let (sequencer, addresses) = try cluster.startSequencer(
                .conflux, .fsync, zeroedBytes: 0, subscribers: 1)
            let client = try cluster.start(.pendingTimers(at: Place(addresses[0]), count: timers))
            try sequencer.awaitReady()
            try client.awaitReady()
            try client.go()
            guard case .times = try client.next() else {
                throw BenchError("the node told something else than that it is done")
            }
            client.end()
            // What the node has left behind is done by then.
            usleep(3_000_000)
            let begin = try sequencer.usedProcessorNanoseconds()
            let start = monotonicNanoseconds()
            usleep(Self.idleSeconds * 1_000_000)
            let used = try sequencer.usedProcessorNanoseconds() - begin
            return Double(used) / 1e6 / (Double(monotonicNanoseconds() - start) / 1e9)
        }
    }
}
