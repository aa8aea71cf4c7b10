import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary

/// A sequencer's status as JSON: what `conflux status --json` prints, and what a gateway serves.
package enum StatusFields {
    /// The status.
    ///
    /// - Parameters:
    ///   - status: The sequencer's view.
    ///   - sequencers: Who serves and who stands by.
    ///   - address: The sequencer's address.
    /// - Returns: The object.
    package static func json(
        _ status: SequencerStatus, of sequencers: [SequencerPlace] = [], at address: String
    ) -> JSONValue {
        let places = sequencers.map { place in
            JSONObject(["address": place.address, "last": place.last, "serving": place.isServing])
        }
        let fields: JSONFields = [
            "address": address, "checkpoint": status.checkpoint, "epoch": status.epoch,
            "floor": status.floor, "health": status.health.map { json($0) },
            "last": status.last, "log": status.log,
            "sequencers": places.isEmpty ? nil : places,
            "sessions": sessions(status), "stores": stores(status),
        ]
        return JSONObject(fields).json
    }

    private static func json(_ health: SequencerHealth) -> JSONObject {
        JSONObject([
            "bounds": health.bounds.map(json), "clockBehind": health.isClockBehind,
            "freeBytes": health.freeBytes, "held": health.held, "limitBytes": health.limitBytes,
            "slowed": health.isSlowed, "usedBytes": health.usedBytes,
        ])
    }

    /// A bound, with how much of it is used.
    package static func json(_ bound: Bound) -> JSONObject {
        JSONObject(["level": bound.level, "limit": bound.most, "name": bound.name])
    }

    /// The sessions of a status, an object each.
    package static func sessions(_ status: SequencerStatus) -> [JSONObject] {
        status.sessions.map { json($0, last: status.last) }
    }

    /// The stores of a status, an object each.
    package static func stores(_ status: SequencerStatus) -> [JSONObject] {
        let names = status.names
        return status.stores.map { json($0, names: names) }
    }

    private static func json(_ session: SessionStatus, last: SequenceNumber) -> JSONObject {
        let lag = lag(of: session, last: last)
        return JSONObject([
            "applied": lag == nil ? nil : session.applied, "bridged": session.bridged,
            "dispatched": session.lastCounter, "hosted": session.hosted,
            "incarnation": session.incarnation, "key": session.owner, "lag": lag,
            "live": session.isLive, "name": session.name,
        ])
    }

    private static func json(_ store: StoreStatus, names: [Incarnation: Name]) -> JSONObject {
        let stopped = store.stopped.map { replica in
            JSONObject([
                "incarnation": replica.node, "name": names[replica.node],
                // Without a state, it did not stop at an entry.
                "sequence": replica.sequence == store.life ? nil : replica.sequence,
            ])
        }
        return JSONObject([
            "divergence": store.divergence.map { JSONObject(divergence($0, names)) },
            "frozen": store.isFrozen, "hosts": store.hosts, "life": store.life,
            "schemaVersion": store.schemaVersion, "snapshot": store.snapshot,
            "stopped": stopped.isEmpty ? nil : stopped, "store": store.store,
        ])
    }

    /// How many entries a session's replicas have not applied yet; nil if it has no replicas, or has not reported
    /// yet.
    package static func lag(of session: SessionStatus, last: SequenceNumber) -> UInt64? {
        guard !session.hosted.isEmpty || !session.bridged.isEmpty, session.applied != .zero
        else { return nil }
        return last.rawValue - min(session.applied.rawValue, last.rawValue)
    }

    /// The members for a store whose replicas differ.
    ///
    /// - Parameters:
    ///   - status: Where they differ.
    ///   - names: The names of nodes.
    /// - Returns: The members.
    package static func divergence(_ status: DivergenceStatus, _ names: [Incarnation: Name])
        -> JSONFields
    {
        [
            "firstUnequal": status.firstUnequal, "lastEqual": status.lastEqual,
            "majority": status.isMajority,
            "nodes": status.nodes.map { JSONObject(["incarnation": $0, "name": names[$0]]) },
            "path": status.path,
        ]
    }
}

extension SequencerStatus {
    /// The names of the nodes that have one.
    package var names: [Incarnation: Name] {
        var names: [Incarnation: Name] = [:]
        for session in sessions { names[session.incarnation] = session.name }
        return names
    }
}
