import Conflux
import ConfluxProtocol

extension NodeMessage {
    /// The message in a few words, for traces.
    var summary: String {
        switch self {
        case .hello(let hello):
            "hello" + (hello.session.map { " of \($0.incarnation)" } ?? "")
                + (hello.history.map { ", has \($0.sequence)" } ?? "")
        case .open(let open): "open \(open.subject)"
        case .close(let close): "close \(close.subject)"
        case .submit(let batch):
            "submit \(batch.firstCounter)…\(batch.lastCounter), settled \(batch.settled)"
        case .fetch(let fetch): "fetch from \(fetch.from)"
        case .progress(let progress):
            "progress \(progress.applied), settled \(progress.settled)"
        case .question(let question): "question \(question.number)"
        case .answer(let answer): "answer \(answer.number)"
        case .barrier(let barrier): "barrier \(barrier.request)"
        case .drop(let drop): "drop \(drop.request): \(drop.store) of \(drop.life)"
        case .load(let load):
            "load \(load.request): \(load.place.text) from \(load.offset)"
        case .digest(.vote(let vote)):
            "vote \(vote.place.text): \(vote.digest), version \(vote.schemaVersion)"
        case .digest(.located(let location)): "located \(location.place.text): \(location.path)"
        case .snapshot(let chunk): "snapshot \(chunk.place.text) from \(chunk.offset)"
        case .freeze(let freeze):
            "\(freeze.isFrozen ? "freeze" : "thaw") \(freeze.request): \(freeze.store)"
        case .upgrade(let upgrade): "upgrade \(upgrade.request): \(upgrade.store)"
        case .migrated(let migrated):
            "migrated \(migrated.place.text) to version \(migrated.schemaVersion): \(migrated.outcome)"
        case .leaving(let leaving): "leaving \(leaving.request)"
        case .skip(let skip): "skip \(skip.request): \(skip.sequence) of \(skip.target)"
        case .bye: "bye"
        }
    }
}

extension SnapshotPlace {
    /// The place in a few words, for traces.
    var text: String { "\(store) at \(sequence)" }
}

extension SequencerMessage {
    /// The message in a few words, for traces.
    var summary: String {
        switch self {
        case .welcome(let welcome):
            "welcome \(welcome.incarnation), last \(welcome.last), agreed \(welcome.agreed), "
                + "settled \(welcome.settled), counter \(welcome.lastCounter)"
        case .opened(let opened): "opened \(opened.request)"
        case .receipts(let receipts):
            "receipts "
                + receipts.runs.map { run in
                    "\(run.firstCounter)+\(run.count) at \(run.firstSequence)"
                }
                .joined(separator: ", ")
        case .rejection(let rejection):
            "rejection \(rejection.firstCounter)+\(rejection.count) \(rejection.code)"
        case .expected(let expected): "expected \(expected.counter) (\(expected.reason))"
        case .entries(let entries):
            "entries \(entries.commits.count), last \(entries.last), floor \(entries.floor)"
        case .question(let question): "question \(question.number)"
        case .answer(let answer): "answer \(answer.number)"
        case .confirmed(let confirmed): "confirmed \(confirmed.request)"
        case .snapshotServed(let served):
            "served \(served.request): \(served.chunk.place.text) from \(served.chunk.offset), "
                + "\(served.chunk.bytes.count) of \(served.chunk.byteCount)"
        case .snapshotRequest(let request):
            "snapshot request \(request.place.text) from \(request.offset)"
        case .divergence(let divergence):
            "divergence \(divergence.place.text), must reload: \(divergence.mustReload)"
        case .migrate(let migrate):
            "migrate \(migrate.store) to version \(migrate.schemaVersion)"
        case .reload(let reload): "reload \(reload.place.text)"
        case .redirect(let redirect): "redirect \(redirect.address)"
        case .bye(let bye): "bye \(bye.code)"
        }
    }
}

extension Delivery {
    /// The delivery in a few words, for traces; nil if the trace shows it elsewhere.
    var summary: String? {
        switch self {
        case .restore(
            let store, let life, let snapshot, let inForce, let aside, let skipped, let through,
            let request):
            "gets \(store), life \(life), at \(snapshot.sequence), version "
                + "\(snapshot.schemaVersion) as \(inForce.version), without \(skipped), aside: \(aside?.count ?? 0) bytes, "
                + "through \(through), by request \(request)"
        case .attach(let subject): "attaches \(subject)"
        case .begin(let subject): "begins \(subject)"
        case .passOver(let last): "passes over the log up to \(last)"
        case .migrate(let store, _, let snapshot, let version):
            "migrates \(store) at \(snapshot.sequence) to version \(version)"
        case .reset: "begins anew"
        case .catchUp(let commit, _, let subjects):
            "catches \(subjects) up with \(commit.first)…\(commit.last)"
        case .commit, .compare, .settle, .opened, .reach: nil
        }
    }
}

extension Outcome {
    /// The outcome in a few words, for traces.
    var summary: String {
        switch self {
        case .committed(let receipt), .ordered(let receipt, _): "at \(receipt.sequence)"
        case .failed(let error):
            "\(error.code)" + (error.receipt.map { " at \($0.sequence)" } ?? "")
        }
    }
}
