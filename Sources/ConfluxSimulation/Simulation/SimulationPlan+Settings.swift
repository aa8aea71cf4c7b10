import ConfluxProtocol
import ConfluxVocabulary

/// The settings of the processes for a plan.
extension SimulationPlan {
    var payloadBytesMax: Int { hasSmallBounds ? 128 : 4_096 }

    /// The bound of a store's lane in bytes, and the bound of the outcomes that may wait for stores.
    var openBytesMax: Int { hasSmallBounds ? 2_000 : 1 << 20 }
    var waitingOutcomesMax: Int { hasSmallBounds ? 4 : 65_536 }

    var sequencerSettings: SequencerSettings {
        var settings = SequencerSettings(feed: "feed")
        settings.payloadBytesMax = UInt32(payloadBytesMax)
        settings.batchBytesMax = UInt32(payloadBytesMax) + 4_096
        settings.windowBytes = settings.batchBytesMax
        settings.commitBytesMax = settings.windowBytes + 4_096
        settings.silenceMax = .seconds(4)
        settings.lockPatience = .milliseconds(500)
        // A migration takes some messages to and fro, and a snapshot takes more.
        settings.migrationPatience = max(
            migrationPatience, max(latency.upperBound, logLatency.upperBound) * 24)
        settings.riseRetryInterval = .seconds(5)
        if let feedCommitBytesMax { settings.feedCommitBytesMax = feedCommitBytesMax }
        keeping.set(&settings)
        if hasSmallBounds {
            settings.sessionsMax = nodes + dispatchers + 1
            settings.lagEntriesMax = 20
            settings.slowdownMax = .seconds(2)
            settings.slowBytesPerBeat = 1_000
            settings.observersMax = max(1, observers)
            settings.unsettledOutcomesMax = 4
            settings.questionsMax = 1
            // Nodes that ask at the same intervals must not keep each other out for ever.
            settings.barriersMax = nodes
            settings.silenceMax = .milliseconds(1_500)
            settings.forgetAfter = .seconds(2)
            settings.readsMax = 2
            settings.fetchBytesMax = 512
        } else {
            settings.windowBytes *= 4
            settings.commitBytesMax = settings.windowBytes * 2
        }
        precondition(settings.fault == nil, "\(settings.fault ?? "")")
        return settings
    }

    func replicaSettings(name: Name?, role: Hello.Role) -> ReplicaSettings {
        var settings = ReplicaSettings(name: name, role: role)
        settings.loadBytes = keeping.partBytesMax
        settings.loadsMax = keeping.transfersMax
        if hasSmallBounds {
            settings.bufferBytesMax = 600
            settings.recentBytesMax = 600
            settings.deliveryBytesMax = 600
            settings.fetchBytes = 512
            settings.catchUpBytesMax = 300
            settings.waitersMax = 2
        }
        return settings
    }

    /// The bounds of a batch in a node's outbox.
    var outboxLimits: WireLimits {
        do {
            return try WireLimits(
                batchBytesMax: payloadBytesMax + 4_096, payloadBytesMax: payloadBytesMax,
                entriesPerBatchMax: hasSmallBounds ? 8 : 1_024)
        } catch {
            preconditionFailure("\(error)")
        }
    }
}
