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
        case .serving(let log, let epoch, let last): tellReady(log, epoch, last)
        case .note(.joined(let node, let name, let key)):
            names[node] = name
            let with = key.map { ", with the key \($0)" } ?? ""
            say(
                "joined", ["incarnation": node, "key": key, "name": name],
                "joined: \(words(node, name))\(with)")
        case .note(.left(let node, let name)):
            names[node] = nil
            say(
                "left", ["incarnation": node, "name": name],
                "left: \(words(node, name))")
        case .note(.diverged(let store, let status)): tell(status, of: store)
        case .note(let note): tell(note)
        case .omitted(let kind, let count, let span):
            let seconds = span.components.seconds
            say(
                "omitted", ["count": count, "of": kind, "seconds": Int(seconds)],
                "\(kind): and \(count) more in the last \(seconds) s")
        case .termFailed(let message, let pause):
            let milliseconds = Int(pause / .milliseconds(1))
            say(
                "logFailed", ["message": message, "pauseMilliseconds": milliseconds],
                "the log failed; trying again in \(pause): \(message)")
        case .authorized(let count):
            say("authorized", ["count": count], "authorised keys: \(count), read again")
        case .authorizationFailed(let message):
            environment.diagnostics.report(
                CommandFailure(
                    .noInput, code: "authorizedKeys",
                    message + " The former keys stay authorised; correct the file and reload it."))
        case .checkpointSaved(let sequence, let bytes):
            say(
                "checkpoint", ["bytes": bytes, "sequence": sequence],
                "checkpoint at \(sequence), of \(bytes) bytes")
        case .checkpointFailed(let message):
            say(
                "checkpointFailed", ["message": message],
                "a checkpoint could not be made: \(message)")
        case .standingBy(let standing, let last): tell(standing, last)
        case .steppedDown(.handedOver(let successor)):
            say("handedOver", ["to": successor], "handed over to \(successor)")
        case .steppedDown:
            say("superseded", [:], "another sequencer has taken over; this one stands by")
        case .ended: break
        }
    }

    private func say(_ event: String, _ fields: JSONFields, _ text: String) {
        environment.announce(event, fields, text: text)
    }

    private func tellReady(_ log: LogID, _ epoch: Epoch, _ last: SequenceNumber) {
        let warning =
            isInsecure
            ? "; INSECURE: everybody who reaches it may read, dispatch and drop, unencrypted" : ""
        let site = place.map { " at \($0)" } ?? ""
        let metrics = http.map { "; metrics at http://\($0)/metrics" } ?? ""
        say(
            "ready",
            [
                "address": sequencer.address, "epoch": epoch, "feed": sequencer.feedAddress,
                "http": http, "insecure": isInsecure, "last": last, "log": log, "place": place,
            ],
            """
            ready at \(sequencer.address), feed at \(sequencer.feedAddress): epoch \
            \(epoch) of log \(log)\(site), which ends at \(last)\(metrics)\(warning)
            """)
    }

    private func tell(_ standing: SequencerEvent.Standing, _ last: SequenceNumber) {
        if let failure = standing.failure {
            return say(
                "logFailed", ["message": failure, "pauseMilliseconds": 500],
                "the log can't be followed; trying again: \(failure)")
        }
        let server =
            standing.server.map { "\($0) serves" } ?? "no other sequencer is known to serve"
        let site = place.map { " for the log at \($0)" } ?? ""
        say(
            "standby",
            [
                "address": sequencer.address, "feed": sequencer.feedAddress, "http": http,
                "last": last, "place": place, "server": standing.server,
            ], "standby at \(sequencer.address)\(site), which ends at \(last): \(server)")
    }

    private mutating func tell(_ note: SequencerNote) {
        switch note {
        case .checkpointSetAside(let sequence, let reason):
            say(
                "checkpointSetAside", ["reason": reason, "sequence": sequence],
                "the checkpoint at \(sequence) could not be used: \(reason)")
        case .logNearlyFull(let hold):
            say(
                "logNearlyFull", fields(hold),
                "the log has nearly reached its bound: actions wait until older entries are "
                    + "discarded; \(hold.words)")
        case .clock(let change): tell(change)
        case .logHasRoom: say("logHasRoom", [:], "the log has room again")
        case .damaged(let damage):
            say(
                "damaged",
                ["from": damage.first, "message": damage.message, "through": damage.last],
                "entries \(damage.first) to \(damage.last) can't be read; stores that need "
                    + "them start after them: \(damage.message)")
        case .snapshotsUnlisted(let message):
            say(
                "snapshotsUnlisted", ["message": message],
                "stores that this may affect can't be opened until a replica provides a "
                    + "snapshot; all others are served: \(message)")
        case .truncated(let floor):
            say(
                "truncated", ["floor": floor],
                "discarded the entries before \(floor): nobody needs them any more")
        case .truncateFailed(let message):
            say(
                "truncateFailed", ["message": message],
                "entries that nobody needs any more could not be discarded yet: \(message)")
        case .unreadable(let message):
            say(
                "unreadable", ["message": message],
                "a frame could not be read and was ignored: \(message)")
        case .slowed(let lagging, let live):
            say(
                "slowed", ["lagging": Int(lagging), "live": Int(live)],
                "\(lagging) of \(live) replicas lag; actions are admitted slowly")
        case .resumed: say("resumed", [:], "actions are admitted as usual again")
        case .barred(let key, let pause):
            let seconds = Int(pause / .seconds(1))
            say(
                "barred", ["key": "\(key)", "seconds": seconds],
                "\(key) kept exceeding its limits, and is barred for "
                    + "\(seconds) s. Stop the program that sends them, or remove the key")
        case .challenged(let epoch):
            say(
                "challenged", ["epoch": epoch],
                "a node knows epoch \(epoch); asking the log whether this term is over")
        case .historyLost(let name, let from, let through):
            say(
                "historyLost", ["from": from, "name": name, "through": through],
                """
                \(name.map { "\($0)" } ?? "a node") had entries \(from) to \(through), which \
                this log does not have; it reloads its stores
                """)
        // The ready line says where the log ends.
        case .recovered, .joined, .left, .diverged: break
        case .created, .dropped, .upgraded, .upgradeFailed, .frozen, .thawed, .skipped,
            .snapshotTaken, .snapshotFailed, .sourcePassedOver, .asideFailed, .converged:
            tellOfStore(note)
        }
    }

    private mutating func tellOfStore(_ note: SequencerNote) {
        switch note {
        case .created(let store, let life):
            say(
                "created", ["life": life, "store": store], "created: \(store), by entry \(life)")
        case .dropped(let store, let life):
            divergences[store] = nil
            say(
                "dropped", ["life": life, "store": store],
                "dropped: \(store), which entry \(life) created")
        case .upgraded(let store, let version):
            divergences[store] = nil
            say(
                "upgraded", ["schemaVersion": version, "store": store],
                """
                upgraded: \(store) has schema version \(version); programs that know only older ones can't open it \
                any more
                """)
        case .upgradeFailed(let store, let version, let reason):
            say(
                "upgradeFailed", ["message": reason, "schemaVersion": version, "store": store],
                "\(store) does not get schema version \(version), and nothing has changed: \(reason)"
            )
        case .frozen(let store, let reason):
            say(
                "frozen", ["reason": "\(reason)", "store": store],
                """
                frozen: \(store), \(Self.words(reason)); no action reaches it until \
                conflux thaw \(store)
                """)
        case .thawed(let store):
            say("thawed", ["store": store], "thawed: actions reach \(store) again")
        case .skipped(let sequence, let target):
            say(
                "skipped", ["skipped": sequence, "target": "\(target)"],
                "skipped: entry \(sequence) has no effect on \(target) any more")
        case .snapshotTaken(let place, let bytes):
            say(
                "snapshot", ["bytes": bytes, "sequence": place.sequence, "store": place.store],
                "snapshot of \(place.store) at \(place.sequence), of \(bytes) bytes")
        case .snapshotFailed(let place, let reason):
            say(
                "snapshotFailed",
                ["reason": reason, "sequence": place.sequence, "store": place.store],
                "no snapshot of \(place.store) at \(place.sequence): \(reason)")
        case .sourcePassedOver(let place, let node, let name, let owner, let reason):
            let with = owner.map { ", with the key \($0)," } ?? ""
            say(
                "sourcePassedOver",
                [
                    "incarnation": node, "key": owner, "name": name, "reason": reason,
                    "sequence": place.sequence, "store": place.store,
                ],
                "\(words(node, name))\(with) was passed over for a snapshot of \(place.store): "
                    + reason)
        case .asideFailed(let store, let reason):
            say(
                "asideFailed", ["reason": reason, "store": store],
                """
                the log can't discard the entries of \(store), because they can't be kept aside: \
                \(reason) Open the store in a program, thaw it, or drop it.
                """)
        case .converged(let store, let sequence):
            divergences[store] = nil
            say(
                "converged", ["sequence": sequence, "store": store],
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
        let fields = StatusFields.divergence(status, names).merging(["store": store]) { $1 }
        say("diverged", fields, DivergenceText.words(store, status, names))
    }

    private static func words(_ reason: FreezeReason) -> String {
        switch reason {
        case .abandoned: "because nobody hosts it and its entries keep the log from shrinking"
        case .unconfirmed: "because no snapshot of it could be taken for too long"
        case .asked: "on request"
        }
    }

    private func tell(_ change: ClockChange) {
        switch change {
        case .jumped(let span):
            let seconds = Int(span.components.seconds)
            say(
                "clockJumped", ["followed": false, "seconds": seconds],
                "the system's clock went forward by \(seconds) s at once. Timestamps follow it if it "
                    + "stays there for a minute; if it is wrong, set it back before")
        case .followed(let span):
            let seconds = Int(span.components.seconds)
            say(
                "clockJumped", ["followed": true, "seconds": seconds],
                "the system's clock has stayed ahead by \(seconds) s for a minute, so timestamps "
                    + "follow it")
        case .behind(let span):
            let seconds = Int(span.components.seconds)
            say(
                "clockBehind", ["seconds": seconds],
                "the system's clock is \(seconds) s behind the log's last timestamp. Timestamps never go "
                    + "back: they advance at seven eighths of the speed until the clock has caught up. Set the clock if "
                    + "it is wrong")
        case .agreed:
            say("clockAgreed", [:], "the system's clock and the log's timestamps agree again")
        }
    }

    private func fields(_ hold: LogHold) -> JSONFields {
        var fields: JSONFields = [
            "floor": hold.floor, "limitBytes": hold.space.limitBytes,
            "nodes": hold.nodes.isEmpty ? nil : hold.nodes, "reason": hold.reason,
            "retainedBytes": hold.retainedBytes, "usedBytes": hold.space.usedBytes,
        ]
        for (key, value) in SequencerFamilies.labels(hold) where !value.isEmpty {
            fields[key == "by" ? "heldBy" : key] = value
        }
        return fields
    }

    private func words(_ node: Incarnation, _ name: Name?) -> String {
        name.map { "\($0) (node \(node))" } ?? "node \(node)"
    }
}
