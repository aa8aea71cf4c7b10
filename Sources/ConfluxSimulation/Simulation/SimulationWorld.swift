/// The shape of a simulated world: how many processes there are, and what mostly happens to them.
///
/// Two in five seeds have small worlds. Runs of these are cheap, and mostly consist of sessions that begin
/// and end.
public enum SimulationWorld: String, Sendable, Hashable, CaseIterable {
    /// One or two nodes on slow links. Nodes and the sequencer constantly pause, break off and return, and
    /// dispatch little.
    case small
    /// Up to four nodes under load, with any mix of faults.
    case mixed
    /// Nodes that start one after the other when there is much to catch up with, while the others continue.
    /// Stores are slow, and so are reads of the log.
    case newcomers
    /// Commits that are too large for the feed: every node fetches them, from a log with slow reads.
    case bulky
    /// Sequencers that pause for a while and continue beside the one that has begun meanwhile, while some
    /// nodes still follow them.
    case rivals
    /// Replicas that often differ, and snapshots in many small parts, over connections that lose messages and
    /// break. A log with slow reads takes so long that the snapshots are outdated by then.
    case parted
    /// Two or three sequencers that share a log on an etcd: one serves, and the others stand by. They crash,
    /// pause, are cut off, and hand over. Requests to the etcd are lost, duplicated and delayed, and clocks
    /// drift.
    case standbys
    /// Entries that crash processes, and are skipped while nodes that have applied them are away. Little else
    /// happens.
    case poisoned
    /// Programs of three versions that come and go, and whose migrations may fail.
    case releases

    /// The shape of the world of a seed.
    init(of seed: UInt64) {
        // Drawn with another number than the rest, so that the other seeds keep the worlds that
        // they had before.
        var chance = SimulationRandom(seed: seed ^ 0x1f83_d9ab_fb41_bd6b)
        guard !chance.chance(0.1) else {
            self = .standbys
            return
        }
        guard !chance.chance(0.12) else {
            self = .releases
            return
        }
        var random = SimulationRandom(seed: seed ^ 0x5bd1_e995_7b93_b1a5)
        self =
            switch random.int(in: 0...19) {
            case 0..<8: .small
            case 9: .rivals
            case 10..<14: .mixed
            case 8, 15: .parted
            case 16..<18: .newcomers
            case 18: .bulky
            default: .poisoned
            }
    }
}

extension SimulationPlan {
    /// Draws a plan.
    ///
    /// - Parameters:
    ///   - random: The random source.
    ///   - world: The shape of the world.
    public init(drawnFrom random: inout SimulationRandom, world: SimulationWorld = .mixed) {
        self.init()
        drawMix(from: &random)
        switch world {
        case .small: drawSmall(from: &random)
        case .mixed: break
        case .newcomers: drawNewcomers(from: &random)
        case .bulky: drawBulk(from: &random)
        case .rivals: drawRivals(from: &random)
        case .parted: drawParted(from: &random)
        case .poisoned: drawPoisoned(from: &random)
        case .standbys: drawStandbys(from: &random)
        case .releases: drawReleases(from: &random)
        }
        if world != .parted { fitParts() }
    }

    /// Draws damage from the seed itself, so that worlds without damage stay as they were before.
    mutating func drawDamage(of seed: UInt64) {
        // A shared log is on other machines' disks.
        guard !isShared else { return }
        var random = SimulationRandom(seed: seed ^ 0x9e6c_63d0_876a_9a69)
        damageEvery = Self.often(&random, 0.15)
    }

    /// Draws processes that only dispatch, likewise.
    mutating func drawDispatchers(of seed: UInt64) {
        var random = SimulationRandom(seed: seed ^ 0x3c79_ac49_2ba7_b653)
        dispatchers = random.chance(0.25) ? random.int(in: 1...3) : 0
    }

    /// Draws what is wrong with newer programs, likewise.
    mutating func drawPrograms(of seed: UInt64) {
        var random = SimulationRandom(seed: seed ^ 0x6a09_e667_f3bc_c909)
        rollback = random.chance(0.4) ? 0.2 : 0
        badMigration = random.pick([0, 0.5, 0.7, 0.9])
        policies = random.chance(0.3) ? 0.3 : 0
        migrationPatience = random.pick([.milliseconds(500), .seconds(2), .seconds(5)])
        bringsFormerProgram = random.chance(0.5)
    }

    private static func often(
        _ random: inout SimulationRandom, _ probability: Double,
        _ choices: [Duration] = [.milliseconds(300), .seconds(1), .seconds(4)]
    ) -> Duration? {
        random.chance(probability) ? random.pick(choices) : nil
    }

    private static func rate(_ random: inout SimulationRandom, _ probability: Double) -> Double {
        random.chance(probability) ? random.pick([0.002, 0.02, 0.15]) : 0
    }

    private mutating func drawMix(from random: inout SimulationRandom) {
        nodes = random.int(in: 1...4)
        observers = random.chance(0.3) ? random.int(in: 1...2) : 0
        faultsFor = random.duration(in: .seconds(3)...(.seconds(20)))
        dispatchEvery = random.pick([.milliseconds(10), .milliseconds(60), .milliseconds(300)])
        if random.chance(0.3) { latency = .milliseconds(1)...(.milliseconds(80)) }
        if random.chance(0.3) { logLatency = .milliseconds(2)...(.milliseconds(60)) }
        feedLoss = Self.rate(&random, 0.5)
        feedDuplication = Self.rate(&random, 0.3)
        feedDelay = Self.rate(&random, 0.3)
        queueLoss = Self.rate(&random, 0.25) / 4
        breakEvery = Self.often(&random, 0.5)
        nodeCrashEvery = Self.often(&random, 0.35)
        sequencerCrashEvery = Self.often(&random, 0.45)
        crashAtEffect = random.chance(0.3) ? random.pick([0.000_5, 0.003]) : 0
        pauseEvery = Self.often(&random, 0.3)
        leaveEvery = Self.often(&random, 0.25)
        drawDurability(from: &random)
        unknownAppend = Self.rate(&random, 0.25)
        logFailure = Self.rate(&random, 0.15) / 4
        slowLog = Self.rate(&random, 0.2)
        slowApply = Self.rate(&random, 0.3)
        clockJump = Self.rate(&random, 0.3)
        badAction = Self.rate(&random, 0.4)
        nameClash = random.chance(0.3) ? 0.2 : 0
        reopenEvery = Self.often(&random, 0.3)
        hasSmallBounds = random.chance(0.4)
        lateStart = Self.rate(&random, 0.3) * 4
        freezeEvery = random.chance(0.2) ? random.pick([.seconds(1), .seconds(3)]) : nil
        spoilEvery = random.chance(0.25) ? random.pick([.seconds(1), .seconds(4)]) : nil
        poisonEvery = random.chance(0.2) ? random.pick([.seconds(1), .seconds(4)]) : nil
        upgradeEvery = random.chance(0.3) ? random.pick([.seconds(1), .seconds(3)]) : nil
        badPart = Self.rate(&random, 0.2)
        damagedCheckpoint = random.chance(0.3) ? 0.3 : 0
        keeping = Keeping(drawnFrom: &random)
        slowCoding = random.chance(0.15) ? random.pick([0.05, 0.4]) : 0
        slowRead = Self.rate(&random, 0.2)
        slowStores = random.chance(0.2) ? 0.3 : 0
    }

    private mutating func drawDurability(from random: inout SimulationRandom) {
        durability = random.pick([.fsync, .fsync, .fsync, .os, .memory])
        guard durability != .memory else {
            (hasRivals, powerLossEvery, oldCopyEvery) = (false, nil, nil)
            return
        }
        hasRivals = pauseEvery != nil && random.chance(0.5)
        powerLossEvery = Self.often(&random, 0.25)
        oldCopyEvery = random.chance(0.15) ? .seconds(2) : nil
    }

    private mutating func drawSmall(from random: inout SimulationRandom) {
        let quick: [Duration] = [.milliseconds(150), .milliseconds(500), .seconds(2)]
        nodes = random.int(in: 1...2)
        observers = random.chance(0.1) ? 1 : 0
        faultsFor = random.duration(in: .seconds(2)...(.seconds(8)))
        dispatchEvery = random.pick([.milliseconds(300), .seconds(1), .seconds(3)])
        latency = random.pick([
            .microseconds(50)...(.milliseconds(2)), .milliseconds(1)...(.milliseconds(80)),
            .milliseconds(20)...(.milliseconds(300)),
        ])
        logLatency = random.pick([
            .microseconds(100)...(.milliseconds(3)), .milliseconds(2)...(.milliseconds(60)),
            .milliseconds(20)...(.milliseconds(200)),
        ])
        breakEvery = Self.often(&random, 0.6, quick)
        nodeCrashEvery = Self.often(&random, 0.3, quick)
        sequencerCrashEvery = Self.often(&random, 0.4, quick)
        crashAtEffect = random.chance(0.3) ? random.pick([0.003, 0.02]) : 0
        pauseEvery = Self.often(&random, 0.6, quick)
        leaveEvery = Self.often(&random, 0.3, quick)
        drawDurability(from: &random)
        slowStores = random.chance(0.1) ? 0.5 : 0
    }

    private mutating func drawNewcomers(from random: inout SimulationRandom) {
        nodes = random.int(in: 2...4)
        faultsFor = random.duration(in: .seconds(4)...(.seconds(10)))
        joinEvery = random.pick([.milliseconds(20), .milliseconds(200), .seconds(1)])
        lateStart = 0
        slowApply = random.pick([0, 0.02, 0.15])
        slowRead = random.pick([0.02, 0.15, 0.5])
        slowStores = random.pick([0, 0.3, 1])
        if random.chance(0.5) { breakEvery = nil }
        if random.chance(0.5) { sequencerCrashEvery = nil }
    }

    private mutating func drawBulk(from random: inout SimulationRandom) {
        faultsFor = random.duration(in: .seconds(3)...(.seconds(8)))
        feedCommitBytesMax = random.pick([150, 400, 1_500])
        slowRead = random.pick([0.02, 0.15, 0.5])
        if random.chance(0.5) { logLatency = .milliseconds(2)...(.milliseconds(60)) }
    }

    private mutating func drawRivals(from random: inout SimulationRandom) {
        nodes = random.int(in: 3...4)
        faultsFor = random.duration(in: .seconds(5)...(.seconds(12)))
        dispatchEvery = random.pick([.milliseconds(60), .milliseconds(300)])
        pauseEvery = random.pick([.milliseconds(150), .milliseconds(500)])
        rivalsAfter = .milliseconds(10)...(.milliseconds(200))
        drawDurability(from: &random)
        if durability == .memory { durability = .fsync }
        hasRivals = true
        // A sequencer that crashes or breaks off would not continue.
        sequencerCrashEvery = nil
        crashAtEffect = 0
        if random.chance(0.5) { breakEvery = nil }
    }

    private mutating func drawParted(from random: inout SimulationRandom) {
        nodes = random.int(in: 3...4)
        faultsFor = random.duration(in: .seconds(5)...(.seconds(10)))
        dispatchEvery = random.pick([.milliseconds(60), .milliseconds(100)])
        lateStart = 0
        // A fault that stops everybody stops snapshots, too.
        durability = .fsync
        (powerLossEvery, oldCopyEvery, sequencerCrashEvery) = (nil, nil, nil)
        (crashAtEffect, unknownAppend, logFailure, slowLog, slowCoding) = (0, 0, 0, 0, 0)
        if random.chance(0.5) { (pauseEvery, hasRivals) = (nil, false) }
        latency = .microseconds(50)...(.milliseconds(2))
        logLatency = .milliseconds(1)...(.milliseconds(20))
        queueLoss = random.pick([0.03, 0.06])
        breakEvery = random.pick([.milliseconds(300), .seconds(1)])
        // If replicas differ, a snapshot of the next point replaces the one under way.
        spoilEvery = random.pick([.milliseconds(300), .seconds(1), nil, nil])
        slowRead = random.pick([0.15, 0.5])
        keeping.digestBytesMin = random.pick([200, 600])
        keeping.snapshotBytesMin = 300
        keeping.partBytesMax = 64
        keeping.votePatience = .milliseconds(100)
        keeping.partPatience = .milliseconds(100)
    }

    private mutating func drawStandbys(from random: inout SimulationRandom) {
        sequencers = random.int(in: 2...3)
        nodes = random.int(in: 1...3)
        observers = random.chance(0.2) ? 1 : 0
        faultsFor = random.duration(in: .seconds(8)...(.seconds(25)))
        dispatchEvery = random.pick([.milliseconds(60), .milliseconds(300), .seconds(1)])
        if latency.upperBound > .milliseconds(2), random.chance(0.5) {
            latency = .microseconds(50)...(.milliseconds(2))
        }
        logLatency = random.pick([
            .microseconds(100)...(.milliseconds(3)), .milliseconds(1)...(.milliseconds(20)),
            .milliseconds(2)...(.milliseconds(60)),
        ])
        (durability, powerLossEvery, oldCopyEvery, hasRivals) = (.fsync, nil, nil, false)
        damagedCheckpoint = 0
        let rare: [Duration] = [.seconds(2), .seconds(4), .seconds(8)]
        sequencerCrashEvery = Self.often(&random, 0.5, rare)
        pauseEvery = Self.often(&random, 0.6, rare)
        cutFromLogEvery = Self.often(&random, 0.5, rare)
        cutFromNodesEvery = Self.often(&random, 0.3, rare)
        stopLogEvery = Self.often(&random, 0.2, rare)
        handOverEvery = Self.often(&random, 0.4, rare)
        clockDrift = random.pick([0, 10, 100, 300])
        requestDoubling = Self.rate(&random, 0.6)
        unknownAppend = Self.rate(&random, 0.4) / 2
        slowLog = Self.rate(&random, 0.3) / 2
        if random.chance(0.5) { (crashAtEffect, nodeCrashEvery, breakEvery) = (0, nil, nil) }
        if random.chance(0.7) { (spoilEvery, poisonEvery, freezeEvery) = (nil, nil, nil) }
    }

    private mutating func drawReleases(from random: inout SimulationRandom) {
        nodes = random.int(in: 2...4)
        faultsFor = random.duration(in: .seconds(6)...(.seconds(20)))
        dispatchEvery = random.pick([.milliseconds(60), .milliseconds(300)])
        lateStart = 0
        upgradeEvery = random.pick([.milliseconds(300), .seconds(1)])
        nodeCrashEvery = Self.often(&random, 0.5)
        leaveEvery = Self.often(&random, 0.5)
        if random.chance(0.5) { (breakEvery, pauseEvery, hasRivals) = (nil, nil, false) }
        if random.chance(0.5) { (sequencerCrashEvery, crashAtEffect) = (nil, 0) }
        if random.chance(0.7) {
            (powerLossEvery, oldCopyEvery, unknownAppend, logFailure) = (nil, nil, 0, 0)
            durability = .fsync
        }
        if random.chance(0.7) { (spoilEvery, poisonEvery, freezeEvery) = (nil, nil, nil) }
    }

    private mutating func drawPoisoned(from random: inout SimulationRandom) {
        nodes = random.int(in: 3...4)
        faultsFor = random.duration(in: .seconds(10)...(.seconds(25)))
        dispatchEvery = random.pick([.milliseconds(60), .milliseconds(300)])
        lateStart = 0
        poisonEvery = random.pick([.milliseconds(500), .seconds(2)])
        // A node that crashes would not return with its state.
        (durability, nodeCrashEvery, leaveEvery) = (.fsync, nil, nil)
        (powerLossEvery, oldCopyEvery, pauseEvery, hasRivals) = (nil, nil, nil, false)
        (crashAtEffect, unknownAppend, logFailure) = (0, 0, 0)
        if random.chance(0.5) { sequencerCrashEvery = nil }
        if random.chance(0.5) { (freezeEvery, upgradeEvery, spoilEvery) = (nil, nil, nil) }
        // A snapshot that includes the entry would end the situation.
        keeping.digestBytesMin = random.pick([2_000, 20_000])
        keeping.snapshotBytesMin = keeping.digestBytesMin
    }

    /// Makes parts larger if a large snapshot could not arrive in time in small parts, and gives votes the time
    /// that the network needs if an upgrade depends on them.
    private mutating func fitParts() {
        let slowest = max(latency.upperBound, logLatency.upperBound)
        if upgradeEvery != nil {
            keeping.votePatience = max(keeping.votePatience, slowest * 4)
            keeping.partPatience = max(keeping.partPatience, slowest * 4)
        }
        if slowest > .milliseconds(3) {
            keeping.partBytesMax = 16_384
        } else if dispatchEvery < .milliseconds(60) {
            keeping.partBytesMax = max(keeping.partBytesMax, 512)
        }
    }
}
