import ConfluxVocabulary

@testable import ConfluxProtocol

/// Describes an effect of a machine in one line: from whom, to whom, and what. The text is the same in every
/// run: logs and nodes are called by name, and nonces are left out.
struct Narration {
    /// The names of nodes, by number from 1.
    let names: [String]

    /// A line, with the second text in a column.
    static func line(_ who: String, _ what: String) -> String {
        who + String(repeating: " ", count: max(1, 22 - who.count)) + what
    }

    private func name(_ node: Cluster.NodeID) -> String { names[node - 1] }

    func line(of event: Cluster.Recorded) -> String {
        switch event {
        case .sequencer(let effect, let node): line(of: effect, to: node.map { name($0) })
        case .node(let node, let effect): line(of: effect, node: name(node))
        case .lostOnFeed(let node): Self.line("feed → \(name(node))", "lost")
        case .lost(let step): line(ofLost: step)
        }
    }

    private func line(ofLost step: Cluster.Step) -> String {
        switch step {
        case .toSequencer(let node, let frame):
            Self.line("\(name(node)) → sequencer", "lost: \(kind(of: frame))")
        case .toNode(let node, _, let frame):
            Self.line("sequencer → \(name(node))", "lost: \(kind(of: frame))")
        case .feed(let frame): Self.line("sequencer → feed", "lost: \(kind(of: frame))")
        case .logged(let append):
            Self.line("log → sequencer", "lost: \(Self.range(append.first, append.last)) is kept")
        case .saved(let saved):
            Self.line("log → sequencer", "lost: a part of \(words(of: saved.place)) is kept")
        }
    }

    private func kind(of frame: [UInt8]) -> String {
        (try? Frame.header(of: frame[...]))?.kind.map { "\($0)" } ?? "no frame"
    }

    // MARK: The sequencer

    private func line(of effect: SequencerEffect, to node: String?) -> String {
        let node = node ?? "nobody"
        return switch effect {
        case .readCheckpoint(let last):
            Self.line("sequencer → log", "read the checkpoint, up to \(last)")
        case .readLog(let from): Self.line("sequencer → log", "read from \(from)")
        case .readSnapshots: Self.line("sequencer → log", "read which snapshots there are")
        case .saveSnapshot(let part): Self.line("sequencer → log", "save " + words(of: part))
        case .keepAside(let jobs, let last):
            Self.line(
                "sequencer → log",
                "keep aside what is up to \(last) of "
                    + jobs.map { "\($0.store)" }.joined(separator: ", "))
        case .removeSnapshots(let store):
            Self.line("sequencer → log", "remove the snapshots of \(store)")
        case .truncate(let floor): Self.line("sequencer → log", "truncate below \(floor)")
        case .append(let append):
            Self.line(
                "sequencer → log",
                "append \(Self.range(append.first, append.last))"
                    + (append.isForced ? ", synced" : "")
                    + ": "
                    + append.commits.map { content(of: $0.frame.dropFirst(Frame.size)) }
                    .joined(separator: "; "))
        case .serve(let beat): Self.line("sequencer", "serves from \(beat.last)")
        case .publishCommit(let frame):
            Self.line("sequencer → feed", "commit " + place(of: frame.dropFirst(Frame.size)))
        case .publishBeat(let beat): Self.line("sequencer → feed", "beat: last \(beat.last)")
        case .send(let message, _): Self.line("sequencer → \(node)", words(of: message))
        case .read(let job):
            Self.line("sequencer → log", "read \(words(of: job.subject)) for \(node)")
        case .makeRoom: Self.line("sequencer → log", "make checkpoints at the end")
        case .confirmTerm: Self.line("sequencer → log", "confirm the term")
        case .reloadKeys: Self.line("sequencer", "reads the keys again")
        case .bar(let key, let pause): Self.line("sequencer", "bars \(key) for \(pause)")
        case .note(let note): Self.line("sequencer", "notes " + words(of: note))
        case .end(.logFailed(let message, _)):
            Self.line("sequencer", "ends: logFailed(\"\(message)\")")
        case .end(let end): Self.line("sequencer", "ends: \(end)")
        }
    }

    private func words(of subject: ReadJob.Subject) -> String {
        switch subject {
        case .commits(let first, _): "from \(first)"
        case .snapshot(let place, let offset):
            "the snapshot of \(words(of: place)) from \(offset)"
        }
    }

    private func words(of note: SequencerNote) -> String {
        switch note {
        case .checkpointSetAside(let number, let why): "checkpoint \(number) set aside: \(why)"
        case .recovered(let from, let through): "recovered from \(from) through \(through)"
        case .slowed(let lagging, let all): "admission slow: \(lagging) of \(all) lag"
        case .resumed: "admission as before"
        case .joined(let incarnation, let name, _): "joined \(incarnation), \(Self.text(name))"
        case .left(let incarnation, let name): "left \(incarnation), \(Self.text(name))"
        case .created(let store, let life): "created \(store) at \(life)"
        case .dropped(let store, let life): "dropped \(store) of \(life)"
        case .unreadable(let text): "unreadable: \(text)"
        case .upgraded(let store, let version): "upgraded \(store) to version \(version)"
        case .upgradeFailed(let store, let version, let why):
            "\(store) does not get version \(version): \(why)"
        case .frozen(let store, let reason): "frozen \(store), \(reason)"
        case .thawed(let store): "thawed \(store)"
        case .skipped(let sequence, let target): "skipped \(sequence) for \(target)"
        case .snapshotTaken(let place, let bytes):
            "snapshot of \(words(of: place)) taken, \(bytes) bytes"
        case .asideFailed(let store, let why): "\(store) can't be kept aside: \(why)"
        case .snapshotsUnlisted(let why): "snapshots can't be listed: \(why)"
        case .snapshotFailed(let place, let why):
            "no snapshot of \(words(of: place)): \(why)"
        case .sourcePassedOver(let place, let node, _, _, let why):
            "node \(node) passed over for \(words(of: place)): \(why)"
        case .diverged(let store, let status): "diverged \(store): " + words(of: status)
        case .converged(let store, let point): "converged \(store) at \(point)"
        case .damaged(let damage): "damaged \(Self.range(damage.first, damage.last))"
        case .logNearlyFull(let hold): "log nearly full, held by \(hold.subject)"
        case .logHasRoom: "log has room"
        case .clock(let change): "clock \(change)"
        case .truncated(let floor): "truncated below \(floor)"
        case .truncateFailed(let text): "not truncated: \(text)"
        case .barred(let key, let pause): "barred \(key) for \(pause)"
        case .challenged(let epoch): "challenged by epoch \(epoch)"
        case .historyLost(let name, let from, let through):
            "history lost of \(Self.text(name)): \(Self.range(from, through))"
        }
    }

    private func words(of message: SequencerMessage) -> String {
        switch message {
        case .welcome(let welcome):
            "welcome \(welcome.incarnation): last \(welcome.last), agreed \(welcome.agreed), "
                + "counter \(welcome.lastCounter)"
        case .opened(let opened):
            switch opened.outcome {
            case .failed(let code, _): "opened \(opened.request): failed, \(code)"
            case .opened(let life, _, _, let floor, let snapshot, let aside, let skipped, _):
                "opened \(opened.request): life \(life)" + words(of: snapshot)
                    + (aside.map { ", aside up to \($0.sequence)" } ?? "")
                    + (floor > SequenceNumber(1) ? ", floor \(floor)" : "")
                    + (skipped.isEmpty ? "" : ", skipped \(skipped)")
            }
        case .receipts(let receipts):
            "receipts "
                + receipts.runs.map { run in
                    "\(Self.range(run.firstCounter, run.count)) at \(run.firstSequence) "
                        + "(epoch \(run.epoch))"
                }.joined(separator: ", ")
        case .rejection(let rejection):
            "rejection \(Self.range(rejection.firstCounter, rejection.count)): \(rejection.code)"
        case .expected(let expected): "expected \(expected.counter): \(expected.reason)"
        case .entries(let entries):
            "entries \(entries.request): "
                + (entries.commits.isEmpty
                    ? "none" : entries.commits.map { place(of: $0) }.joined(separator: ", "))
                + ", last \(entries.last)"
        case .question(let question): "question \(question.number): \(question.body)"
        case .answer(let answer): "answer \(answer.number): \(answer.body)"
        case .confirmed(let confirmed):
            "confirmed \(confirmed.request): \(confirmed.outcome)"
        case .snapshotServed(let served):
            "snapshot served \(served.request): " + words(of: served.chunk)
        case .snapshotRequest(let request):
            "snapshot request: \(words(of: request.place)) from \(request.offset)"
        case .divergence(let divergence): words(of: divergence)
        case .migrate(let migrate):
            "migrate \(migrate.store) to version \(migrate.schemaVersion)"
                + words(of: migrate.snapshot)
        case .reload(let reload): "reload \(words(of: reload.place))"
        case .redirect(let redirect): "redirect \(redirect.request): \(redirect.address)"
        case .bye(let bye): "bye: \(bye.code)"
        }
    }

    // MARK: Commits

    private func commit(_ body: Bytes) -> Commit? { try? Commit.decode(body: body) }

    private func place(of body: Bytes) -> String {
        commit(body).map { Self.range($0.first, $0.last) } ?? "unreadable"
    }

    private func content(of body: Bytes) -> String {
        guard let commit = commit(body) else { return "unreadable" }
        return commit.blocks.map { block in
            switch block {
            case .batch(let incarnation, let batch):
                "\(Self.range(batch.firstCounter, batch.count)) of \(incarnation)"
            case .event(.claim(let epoch, _), _): "claim of epoch \(epoch)"
            case .event(.joined(_, let name, .none, _), _): "joined \(Self.text(name))"
            case .event(.joined(_, let name, let former, _), _):
                "joined \(Self.text(name)), again as \(former)"
            case .event(.visited, _): "visited"
            case .event(.left(let incarnation), _): "left \(incarnation)"
            case .event(.forgotten(let incarnation), _): "forgotten \(incarnation)"
            case .event(.created(let store, _, _), _): "created \(store)"
            case .event(.dropped(let store, let life), _): "dropped \(store) of \(life)"
            case .event(.upgraded(let store, _, let version, let base, _), _):
                "upgraded \(store) to version \(version) from \(base)"
            case .event(.frozen(let store, _, let reason), _): "frozen \(store), \(reason)"
            case .event(.thawed(let store, _), _): "thawed \(store)"
            case .event(.digestPoint(let store, _), _): "digest point of \(store)"
            case .event(.skipped(let sequence, let target), _): "skipped \(sequence) for \(target)"
            case .event(.handles(let state, let events), _): "\(state) handles \(events)"
            case .event(.forked(let log), _): "forked from \(log)"
            }
        }.joined(separator: "; ")
    }

    // MARK: Nodes

    private func line(of effect: ReplicaEffect, node: String) -> String {
        switch effect {
        case .send(let message): Self.line("\(node) → sequencer", words(of: message))
        case .connect(let address): Self.line(node, "connect: \(address ?? "next")")
        case .subscribe: Self.line("\(node) → feed", "subscribe")
        case .deliver(let delivery): Self.line(node, words(of: delivery))
        case .give(let request):
            Self.line(node, "is to give \(words(of: request.place)) from \(request.offset)")
        case .asked(let question): Self.line(node, "is asked \(question.body)")
        case .answered(let answer): Self.line(node, "is answered \(answer.body)")
        case .loaded(let request, let bytes):
            Self.line(node, "loaded \(request): \(bytes.map { "\($0.count) bytes" } ?? "nothing")")
        case .event(let event): Self.line(node, "reports " + words(of: event))
        case .end(let end): Self.line(node, "ends: " + words(of: end))
        }
    }

    private func words(of message: NodeMessage) -> String {
        switch message {
        case .hello(let hello):
            (["hello"]
                + [
                    hello.session.map { "as \($0.incarnation) of log \($0.log.low)" },
                    hello.history.map { "history to \($0.sequence) of epoch \($0.epoch)" },
                    hello.hosted.isEmpty
                        ? nil
                        : "hosts " + hello.hosted.map(\.store.description).joined(separator: " "),
                    hello.bridged.isEmpty
                        ? nil : "bridges " + hello.bridged.map(\.state.text).joined(separator: " "),
                ].compactMap { $0 }).joined(separator: ", ")
        case .open(let open): "open \(open.request): \(words(of: open.subject))"
        case .close(let close): "close \(words(of: close.subject))"
        case .submit(let batch):
            "submit \(Self.range(batch.firstCounter, batch.count))"
                + (batch.isAtomic ? ", atomic" : "") + ", settled \(batch.settled)"
        case .fetch(let fetch): "fetch \(fetch.request): from \(fetch.from)"
        case .progress(let progress):
            "progress: applied \(progress.applied), settled \(progress.settled)"
                + progress.stopped.map { ", \($0.store) stopped at \($0.sequence)" }.joined()
        case .question(let question): "question \(question.number): \(question.body)"
        case .answer(let answer): "answer \(answer.number): \(answer.body)"
        case .barrier(let barrier): "barrier \(barrier.request)"
        case .drop(let drop): "drop \(drop.request), \(drop.store) of \(drop.life)"
        case .load(let load):
            "load \(load.request): \(words(of: load.place)) from \(load.offset)"
        case .digest(let report): words(of: report)
        case .snapshot(let chunk): "snapshot: " + words(of: chunk)
        case .skip(let skip): "skip \(skip.request), \(skip.sequence) for \(skip.target)"
        case .freeze(let freeze):
            "\(freeze.isFrozen ? "freeze" : "thaw") \(freeze.request), \(freeze.store)"
        case .upgrade(let upgrade): "upgrade \(upgrade.request), \(upgrade.store)"
        case .migrated(let migrated):
            "migrated \(words(of: migrated.place)) to version \(migrated.schemaVersion): \(migrated.outcome)"
        case .leaving(let leaving): "leaving \(leaving.request)"
        case .bye(let bye): "bye: \(bye.code)"
        }
    }

    private func words(of subject: HostingSubject) -> String {
        switch subject {
        case .store(let store): "store \(store)"
        case .state(let state): "state \(state)"
        }
    }

    private func words(of delivery: Delivery) -> String {
        switch delivery {
        case .commit(let commit, _): "applies \(Self.range(commit.first, commit.last))"
        case .catchUp(let commit, _, let subjects):
            "catches \(subjects.map { words(of: $0) }.joined(separator: ", ")) up with "
                + Self.range(commit.first, commit.last)
        case .restore(let store, _, let snapshot, _, let aside, let skipped, _, _):
            "restores \(store) at \(snapshot.sequence)"
                + (aside.map { ", with \($0.count) bytes kept aside" } ?? "")
                + (skipped.isEmpty ? "" : ", skipping \(skipped)")
        case .begin(let subject): "begins to catch up \(words(of: subject))"
        case .passOver(let last): "passes over what is up to \(last)"
        case .migrate(let store, _, let snapshot, let version):
            "migrates \(store) at \(snapshot.sequence) to version \(version)"
        case .compare(let divergence, let bytes):
            "compares \(words(of: divergence.place)) with "
                + (bytes.map { "\($0.count) bytes" } ?? "nothing")
        case .attach(let subject): "attaches \(words(of: subject))"
        case .settle(let outcome):
            "tells \(Self.range(outcome.firstCounter, outcome.count)): "
                + words(of: outcome.status)
        case .opened(let request, .opened): "tells open \(request): opened"
        case .opened(let request, .failed(let code, _)): "tells open \(request): failed, \(code)"
        case .reach(let request, let outcome): "tells wait \(request): \(outcome)"
        case .reset: "begins its replicas anew"
        }
    }

    private func words(of status: ActionOutcome.Status) -> String {
        switch status {
        case .committed(_, let sequence, let epoch, _): "at \(sequence) (epoch \(epoch))"
        case .rejected(let code, _): "rejected, \(code)"
        case .conflict(let version, _): "conflict with \(version.sequence)"
        case .unknown: "unknown"
        }
    }

    private func words(of event: ReplicaEvent) -> String {
        switch event {
        case .joined(let log, let epoch, let incarnation):
            "joined as \(incarnation) of log \(log.low), epoch \(epoch)"
        case .disconnected: "disconnected"
        case .notAllowed(let message): "may not: \(message)"
        case .notServing(let message): "not served: \(message)"
        case .feedSilent: "the feed is silent"
        case .heldUp(let message): "held up: \(message)"
        case .reconnected(let epoch): "reconnected, epoch \(epoch)"
        case .staleSequencer(let epoch): "stale sequencer of epoch \(epoch)"
        case .historyLost(let from, let through): "history lost: \(Self.range(from, through))"
        case .sessionForgotten: "session forgotten"
        case .missed(let from, let through): "missed \(Self.range(from, through))"
        case .damaged(let damage): "damaged \(Self.range(damage.first, damage.last))"
        }
    }

    private func words(of end: ReplicaEnd) -> String {
        switch end {
        case .left: "left"
        case .refused(let code, _): "refused, \(code)"
        case .unreadable(let text): "unreadable, \(text)"
        }
    }

    // MARK: Words

    private static func text(_ name: Name?) -> String { name?.text ?? "a node without a name" }

    private static func range(_ first: SequenceNumber, _ last: SequenceNumber) -> String {
        first == last ? "\(first)" : "\(first)…\(last)"
    }

    private static func range(_ first: UInt64, _ count: UInt32) -> String {
        count == 1 ? "\(first)" : "\(first)…\(first + UInt64(count) - 1)"
    }
}
