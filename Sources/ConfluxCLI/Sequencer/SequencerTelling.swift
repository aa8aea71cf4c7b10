import ConfluxNode
import ConfluxProtocol
import ConfluxSequencer
import ConfluxWorker

/// Prints what happens to a sequencer, line by line.
struct SequencerTelling {
    let sequencer: Sequencer
    let environment: CommandEnvironment
    /// Whether everybody may connect.
    private let isInsecure: Bool
    /// The address of the metrics, if they are served.
    let http: String?
    /// The address of the log, if it is on etcd.
    let place: String?
    /// The names of the live nodes that have one. *Invariant*: not more than there are sessions.
    private var names: [Incarnation: Name] = [:]
    /// What was last printed about the stores whose replicas differ. Each digest point reports them again; only what
    /// is new is printed.
    private var divergences: [StoreName: DivergenceStatus] = [:]

    init(
        _ sequencer: Sequencer, isInsecure: Bool, http: String?, place: String? = nil,
        _ environment: CommandEnvironment
    ) {
        self.sequencer = sequencer
        self.isInsecure = isInsecure
        self.http = http
        self.place = place
        self.environment = environment
    }

    mutating func tell(_ event: SequencerEvent) {
        switch event {
        case .serving(let log, let epoch, let last):
            let warning =
                isInsecure
                ? "; INSECURE: everybody who reaches it may read, dispatch and drop, unencrypted"
                : ""
            var fields: JSONObject = [
                "address": .string(sequencer.address), "epoch": .number(epoch),
                "feed": .string(sequencer.feedAddress), "insecure": .bool(isInsecure),
                "last": .number(last), "log": .string(log.description),
            ]
            fields["http"] = http.map { .string($0) }
            fields["place"] = place.map { .string($0) }
            let site = place.map { " at \($0)" } ?? ""
            let metrics = http.map { "; metrics at http://\($0)/metrics" } ?? ""
            environment.announce(
                "ready", fields,
                text: """
                    ready at \(sequencer.address), feed at \(sequencer.feedAddress): epoch \
                    \(epoch) of log \(log)\(site), which ends at \(last)\(metrics)\(warning)
                    """)
        case .note(let note): tell(note)
        case .omitted(let kind, let count, let span):
            environment.announce(
                "omitted",
                [
                    "count": .number(UInt64(count)), "of": .string(kind),
                    "seconds": .number(UInt64(span.components.seconds)),
                ],
                text: "\(kind): and \(count) more in the last \(span.components.seconds) s")
        case .tenureFailed(let message, let pause):
            let milliseconds = UInt64(clamping: Int64(pause / .milliseconds(1)))
            environment.announce(
                "logFailed",
                ["message": .string(message), "pauseMilliseconds": .number(milliseconds)],
                text: "the log failed; trying again in \(pause): \(message)")
        case .authorized(let count):
            environment.announce(
                "authorized", ["count": .number(UInt64(count))],
                text: "authorised keys: \(count), read again")
        case .authorizationFailed(let message):
            environment.diagnostics.report(
                CommandFailure(
                    .noInput, code: "authorizedKeys",
                    message + " The former keys stay authorised; correct the file and reload it."))
        case .checkpointSaved(let sequence, let bytes):
            environment.announce(
                "checkpoint", ["bytes": .number(UInt64(bytes)), "sequence": .number(sequence)],
                text: "checkpoint at \(sequence), of \(bytes) bytes")
        case .checkpointFailed(let message):
            environment.announce(
                "checkpointFailed", ["message": .string(message)],
                text: "a checkpoint could not be made: \(message)")
        case .standingBy(let standing, let last): tell(standing, last)
        case .steppedDown(let reason): tell(reason)
        case .ended: break
        }
    }

    private mutating func tell(_ note: SequencerNote) {
        switch note {
        case .joined(let incarnation, let name, let key):
            names[incarnation] = name
            var fields = session(incarnation, name)
            fields["key"] = key.map { .string($0.text) }
            let with = key.map { ", with the key \($0)" } ?? ""
            environment.announce(
                "joined", fields, text: "joined: \(words(incarnation, name))\(with)")
        case .left(let incarnation, let name):
            names[incarnation] = nil
            environment.announce(
                "left", session(incarnation, name), text: "left: \(words(incarnation, name))")
        case .recovered: break  // the ready line says where the log ends
        case .checkpointSetAside(let sequence, let reason):
            environment.announce(
                "checkpointSetAside",
                ["reason": .string(reason), "sequence": .number(sequence)],
                text: "the checkpoint at \(sequence) could not be used: \(reason)")
        case .logNearlyFull(let hold):
            environment.announce(
                "logNearlyFull", fields(hold),
                text:
                    "the log has nearly reached its bound: actions wait until older entries are "
                    + "discarded; \(hold.words)")
        case .clock(let change): tell(change)
        case .logHasRoom:
            environment.announce("logHasRoom", text: "the log has room again")
        case .damaged(let damage):
            environment.announce(
                "damaged",
                [
                    "from": .number(damage.first), "through": .number(damage.last),
                    "message": .string(damage.message),
                ],
                text:
                    "entries \(damage.first) to \(damage.last) can't be read; stores that need "
                    + "them start after them: \(damage.message)")
        case .snapshotsUnlisted(let message):
            environment.announce(
                "snapshotsUnlisted", ["message": .string(message)],
                text: "stores that this may affect can't be opened until a replica provides a "
                    + "snapshot; all others are served: \(message)")
        case .truncated(let floor):
            environment.announce(
                "truncated", ["floor": .number(floor)],
                text: "discarded the entries before \(floor): nobody needs them any more")
        case .truncateFailed(let message):
            environment.announce(
                "truncateFailed", ["message": .string(message)],
                text: "entries that nobody needs any more could not be discarded yet: \(message)")
        case .unreadable(let message):
            environment.announce(
                "unreadable", ["message": .string(message)],
                text: "a frame could not be read and was ignored: \(message)")
        case .slowed(let lagging, let live):
            environment.announce(
                "slowed", ["lagging": .number(UInt64(lagging)), "live": .number(UInt64(live))],
                text: "\(lagging) of \(live) replicas lag; actions are admitted slowly")
        case .resumed:
            environment.announce("resumed", text: "actions are admitted as usual again")
        case .barred(let key, let pause):
            environment.announce(
                "barred",
                ["key": .string("\(key)"), "seconds": .number(UInt64(pause / .seconds(1)))],
                text: "\(key) kept exceeding its limits, and is barred for "
                    + "\(Int(pause / .seconds(1))) s. Stop the program that sends them, or remove the key"
            )
        case .challenged(let epoch):
            environment.announce(
                "challenged", ["epoch": .number(epoch)],
                text: "a node knows epoch \(epoch); asking the log whether this tenure is over")
        case .historyLost(let name, let from, let through):
            var fields: JSONObject = ["from": .number(from), "through": .number(through)]
            fields["name"] = name.map { .string($0.text) }
            environment.announce(
                "historyLost", fields,
                text: """
                    \(name.map { "\($0)" } ?? "a node") had entries \(from) to \(through), which \
                    this log does not have; it reloads its stores
                    """)
        case .created, .dropped, .upgraded, .upgradeFailed, .frozen, .thawed, .skipped,
            .snapshotTaken,
            .snapshotFailed, .sourcePassedOver, .asideFailed, .diverged, .converged:
            tellOfStores(note)
        }
    }

    private mutating func tellOfStores(_ note: SequencerNote) {
        switch note {
        case .created(let store, let life):
            announce(
                "created", store, ["life": .number(life)], "created: \(store), by entry \(life)")
        case .dropped(let store, let life):
            divergences[store] = nil
            announce(
                "dropped", store, ["life": .number(life)],
                "dropped: \(store), which entry \(life) created")
        case .upgraded(let store, let version):
            divergences[store] = nil
            announce(
                "upgraded", store, ["schemaVersion": .number(UInt64(version))],
                """
                upgraded: \(store) has schema version \(version); programs that know only older ones can't open it \
                any more
                """)
        case .upgradeFailed(let store, let version, let reason):
            announce(
                "upgradeFailed", store,
                ["message": .string(reason), "schemaVersion": .number(UInt64(version))],
                "\(store) does not get schema version \(version), and nothing has changed: \(reason)"
            )
        case .frozen(let store, let reason):
            announce(
                "frozen", store, ["reason": .string("\(reason)")],
                """
                frozen: \(store), \(Self.words(reason)); no action reaches it until \
                conflux thaw \(store)
                """)
        case .thawed(let store):
            announce("thawed", store, [:], "thawed: actions reach \(store) again")
        case .skipped(let sequence, let target):
            environment.announce(
                "skipped",
                ["skipped": .number(sequence), "target": .string(target.description)],
                text: "skipped: entry \(sequence) has no effect on \(target) any more")
        case .snapshotTaken(let place, let bytes):
            announce(
                "snapshot", place.store,
                ["bytes": .number(bytes), "sequence": .number(place.sequence)],
                "snapshot of \(place.store) at \(place.sequence), of \(bytes) bytes")
        case .snapshotFailed(let place, let reason):
            announce(
                "snapshotFailed", place.store,
                ["reason": .string(reason), "sequence": .number(place.sequence)],
                "no snapshot of \(place.store) at \(place.sequence): \(reason)")
        case .sourcePassedOver(let place, let node, let name, let owner, let reason):
            var fields = session(node, name)
            fields["key"] = owner.map { .string($0.text) }
            fields["reason"] = .string(reason)
            fields["sequence"] = .number(place.sequence)
            let with = owner.map { ", with the key \($0)," } ?? ""
            announce(
                "sourcePassedOver", place.store, fields,
                "\(words(node, name))\(with) was passed over for a snapshot of \(place.store): "
                    + reason)
        case .asideFailed(let store, let reason):
            announce(
                "asideFailed", store, ["reason": .string(reason)],
                """
                the log can't discard the entries of \(store), because they can't be kept aside: \
                \(reason) Open the store in a program, thaw it, or drop it.
                """)
        case .diverged(let store, let status): tell(status, of: store)
        case .converged(let store, let sequence):
            divergences[store] = nil
            announce(
                "converged", store, ["sequence": .number(sequence)],
                "converged: the replicas of \(store) were all the same at \(sequence)")
        default: break
        }
    }

    private mutating func tell(_ status: DivergenceStatus, of store: StoreName) {
        if let former = divergences[store], former.nodes == status.nodes,
            former.isMajority == status.isMajority, former.path != nil || status.path == nil
        {
            return
        }
        divergences[store] = status
        announce(
            "diverged", store, DivergenceText.json(status, names),
            DivergenceText.words(store, status, names))
    }

    private func announce(
        _ event: String, _ store: StoreName, _ fields: JSONObject, _ text: String
    ) {
        var fields = fields
        fields["store"] = .string(store.description)
        environment.announce(event, fields, text: text)
    }

    private static func words(_ reason: FreezeReason) -> String {
        switch reason {
        case .abandoned: "because nobody hosts it and its entries keep the log from shrinking"
        case .unconfirmed: "because no snapshot of it could be taken for too long"
        case .asked: "on request"
        }
    }

    private func tell(_ change: ClockChange) {
        func announce(
            _ event: String, _ span: Duration, _ text: String, _ fields: JSONObject = [:]
        ) {
            var fields = fields
            fields["seconds"] = .number(UInt64(clamping: span.components.seconds))
            environment.announce(event, fields, text: text)
        }
        switch change {
        case .jumped(let span):
            announce(
                "clockJumped", span,
                "the system's clock went forward by \(span.components.seconds) s at once. Timestamps follow it if it "
                    + "stays there for a minute; if it is wrong, set it back before",
                ["followed": false])
        case .followed(let span):
            announce(
                "clockJumped", span,
                "the system's clock has stayed ahead by \(span.components.seconds) s for a minute, so timestamps "
                    + "follow it", ["followed": true])
        case .behind(let span):
            announce(
                "clockBehind", span,
                "the system's clock is \(span.components.seconds) s behind the log's last timestamp. Timestamps never go "
                    + "back: they advance at seven eighths of the speed until the clock has caught up. Set the clock if "
                    + "it is wrong")
        case .agreed:
            environment.announce(
                "clockAgreed", text: "the system's clock and the log's timestamps agree again")
        }
    }

    private func fields(_ hold: LogHold) -> JSONObject {
        var fields: JSONObject = [
            "floor": .number(hold.floor), "limitBytes": .number(hold.space.limitBytes),
            "reason": .string(hold.reason), "retainedBytes": .number(hold.retainedBytes),
            "usedBytes": .number(hold.space.usedBytes),
        ]
        switch hold.subject {
        case .store(let name):
            fields["heldBy"] = "store"
            fields["store"] = .string(name.description)
            if !hold.nodes.isEmpty { fields["nodes"] = .array(hold.nodes.map { .string($0) }) }
        case .checkpoint: fields["heldBy"] = "checkpoint"
        case .nothing: fields["heldBy"] = "nothing"
        }
        return fields
    }

    private func session(_ incarnation: Incarnation, _ name: Name?) -> JSONObject {
        var fields: JSONObject = ["incarnation": .number(incarnation)]
        fields["name"] = name.map { .string($0.text) }
        return fields
    }

    private func words(_ incarnation: Incarnation, _ name: Name?) -> String {
        name.map { "\($0) (node \(incarnation))" } ?? "node \(incarnation)"
    }
}
