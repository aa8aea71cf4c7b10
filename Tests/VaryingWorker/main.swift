import ConfluxWorker
import Foundation

/// The command line takes the place of what would be built into a program: nodes whose names begin with `new` have
/// the newer code of the ledger. For a command that has no node, a variable does.
let isNew =
    CommandLine.arguments.contains { $0.hasPrefix("new") }
    || ProcessInfo.processInfo.environment["VARYING_IS_NEW"] != nil

await Worker.main(
    "varying-worker", version: "7.8.9",
    states: [
        HostedState(Wordlist.self),
        isNew ? HostedState(NewLedger.self) : HostedState(OldLedger.self),
    ])
