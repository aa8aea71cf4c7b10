import ConfluxVocabulary
import Testing

@testable import ConfluxProtocol

/// Processes with one session key that dispatch the lines of a file. They are killed, and so is the sequencer.
struct KeyedRun {
    let lineCount: UInt64 = 40
    private let badLines: Set<UInt64>
    private var random: SplitMix64
    private var cluster = Cluster()
    private var process = 0
    /// The line that the process reads next; nil before its welcome.
    private var next: UInt64?
    /// The line up to which some process reported the outcomes.
    private(set) var told: UInt64 = 0
    private var kills = 25

    init(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        badLines = Set((1...lineCount).filter { _ in Int.random(in: 0..<5, using: &random) == 0 })
        self.random = random
        cluster.startSequencer()
        cluster.addNode(1_000, named: "worker", store: "list")
    }

    var expected: [String] {
        (1...lineCount).filter { !badLines.contains($0) }.map { "\($0)" }
    }
    var texts: [String] { cluster.nodes[1_000]?.texts(of: "list") ?? [] }

    private mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    mutating func finish() {
        var steps = 0
        while told < lineCount, steps < 5_000 {
            steps += 1
            // A process that was refused is run again, as a script would do.
            if process == 0 || cluster.nodes[process]?.end != nil { cluster.removeNode(process) }
            if cluster.nodes[process] == nil { begin() }
            let isDangerous = kills > 0
            switch below(isDangerous ? 14 : 9) {
            case 0...3: read()
            case 4: tell()
            case 5: cluster.pass(.milliseconds(Int64(1 + below(300))))
            case 6: cluster.finishAppends()
            case 7 where isDangerous: cluster.isDiskSlow = true
            case 9:
                kills -= 1
                cluster.removeNode(process)
            case 10:
                kills -= 1
                if below(2) == 0 { landSome() }
                cluster.isDiskSlow = false
                cluster.restartSequencer()
            case 11: cluster.reconnect(process)
            default:
                for _ in 0..<below(6) where !cluster.queue.isEmpty {
                    cluster.deliver(cluster.queue.removeFirst())
                }
                cluster.handle(.drained)
            }
        }
        cluster.finishAppends()
        cluster.pass(.seconds(3))
    }

    private mutating func begin() {
        process += 1
        next = nil
        cluster.addNode(process, key: "k")
    }

    /// Some of the waiting commits reach the disk, and the sequencer dies before it reports them.
    private mutating func landSome() {
        for append in cluster.waitingAppends.prefix(below(2)) {
            cluster.disk.append(append)
        }
    }

    private mutating func read() {
        guard let machine = cluster.nodes[process]?.machine, machine.isJoined,
            let resumption = machine.resumption
        else { return }
        let first = next ?? resumption.settled + 1
        guard first <= lineCount else { return }
        let bound = first <= resumption.lastCounter ? resumption.lastCounter : lineCount
        var last = min(bound, first + UInt64(below(6)))
        if badLines.contains(first) {
            while last > first, !(first...last).allSatisfy(badLines.contains) { last -= 1 }
            cluster.input(.skipped(UInt32(last - first + 1)), to: process)
        } else {
            while last > first, !(first...last).allSatisfy({ !badLines.contains($0) }) { last -= 1 }
            cluster.submit((first...last).map { "\($0)" }, to: "list/*", from: process)
        }
        next = last + 1
    }

    private mutating func tell() {
        guard let node = cluster.nodes[process], let resumption = node.machine.resumption else {
            return
        }
        // A process before this one must have reported all settled lines.
        if resumption.settled > told {
            Issue.record("line \(resumption.settled) is settled, and told is only \(told)")
        }
        var line = resumption.settled
        while let status = node.outcomes[line + 1] {
            line += 1
            let isBad = badLines.contains(line)
            switch status {
            case .committed where !isBad: break
            case .rejected where isBad: break
            default: Issue.record("line \(line) ended as \(status)")
            }
        }
        told = max(told, line)
        cluster.input(.told(line), to: process)
    }
}
