import ConfluxWorker
import Foundation

/// The command line takes the place of what would be built into a program: nodes whose names begin with `new` have
/// the newer code of the ledger. For a command that has no node, a variable has the name. With another variable, the
/// program dispatches to its ledger, and with a third one its worker has code of its own.
let isNew = begins("new")

if ProcessInfo.processInfo.environment["VARYING_DISPATCHES"] != nil,
    let program = DispatchingProgram(CommandLine.arguments)
{
    if isNew {
        try await program.run(NewLedger.self, dispatching: .add(amount: 1, padding: nil))
    } else {
        try await program.run(OldLedger.self, dispatching: .add(amount: 1, padding: nil))
    }
    exit(0)
}
if let code = OwnCode.present {
    await Worker.main("varying-worker", states: [HostedState(OldLedger.self)]) { node, ready in
        try await code.run(node, ready: ready)
    }
}
await Worker.main(
    "varying-worker", version: "7.8.9",
    states: [
        HostedState(Wordlist.self),
        isNew ? HostedState(NewLedger.self) : HostedState(OldLedger.self),
    ])
