import ConfluxNode
import ConfluxProtocol
import ConfluxSequencer

/// Settings for digests, snapshots and truncation: so small that all of them happen within one run.
public struct Keeping: Sendable, Hashable {
    /// See `SequencerSettings.digestBytesMin`.
    public var digestBytesMin = 200
    /// See `SequencerSettings.snapshotBytesMin`.
    public var snapshotBytesMin = 500
    /// See `SequencerSettings.snapshotPartBytesMax`, and `ReplicaSettings.loadBytes`.
    public var partBytesMax: UInt32 = 100
    /// See `SequencerSettings.votePatience`.
    public var votePatience: Duration = .milliseconds(300)
    /// See `SequencerSettings.snapshotPatience`.
    public var partPatience: Duration = .milliseconds(500)
    /// See `SequencerSettings.uploadsMax`, and `ReplicaSettings.loadsMax`.
    public var transfersMax = 2
    /// See `Retention`.
    public var retainedBytesMax = 4_000
    /// See `SequencerSettings.unconfirmedBytesMax`.
    public var unconfirmedBytesMax = 1 << 30
    /// See `SequencerSettings.asideBytesMax`.
    public var asideBytesMax = 1 << 20
    /// See `AsideRun.heldBytesMax`.
    var asideHeldBytesMax = AsideRun.heldBytesMax
    /// How many bytes of commits follow a checkpoint when the next one is made.
    public var checkpointBytes = 4_096
    /// See `NodeSettings.encodingsBytesMax`.
    public var encodingsBytesMax = 1 << 20
    /// The size from which a node decodes snapshots beside applying.
    public var inPlaceBytesMax = 1 << 16

    /// Makes the default settings.
    public init() {}

    init(drawnFrom random: inout SimulationRandom) {
        digestBytesMin = random.pick([100, 200, 600])
        snapshotBytesMin = random.pick([300, 500, 2_000])
        partBytesMax = random.pick([64, 100, 1_024])
        votePatience = random.pick([.milliseconds(30), .milliseconds(300), .seconds(2)])
        partPatience = random.pick([.milliseconds(300), .milliseconds(500), .seconds(2)])
        transfersMax = random.int(in: 1...2)
        retainedBytesMax = random.pick([1_000, 4_000, 20_000])
        if random.chance(0.3) { unconfirmedBytesMax = 3_000 }
        asideBytesMax = random.pick([500, 4_000, 30_000])
        checkpointBytes = random.pick([1_024, 4_096])
        if random.chance(0.2) { encodingsBytesMax = random.pick([300, 1_000]) }
        if random.chance(0.5) { inPlaceBytesMax = 150 }
        if random.chance(0.5) { asideHeldBytesMax = 2_000 }
    }

    func set(_ settings: inout SequencerSettings) {
        settings.digestBytesMin = UInt64(digestBytesMin)
        settings.digestRatioMin = 1
        settings.votePatience = votePatience
        settings.snapshotBytesMin = UInt64(snapshotBytesMin)
        settings.snapshotPartBytesMax = partBytesMax
        settings.snapshotPatience = partPatience
        settings.uploadsMax = transfersMax
        settings.retention.bytesMax = UInt64(retainedBytesMax)
        settings.floorReviewInterval = .milliseconds(200)
        settings.asideBytesMax = UInt64(asideBytesMax)
        settings.unconfirmedBytesMax = UInt64(unconfirmedBytesMax)
    }
}
