import ConfluxWorker
import Foundation

/// What the own code of this program does, by the variable `VARYING_CODE`. It says what it sees on lines of its own.
enum OwnCode: String {
    /// Is ready once the total of the ledger is 10, and then goes on until its task is cancelled.
    case serves
    /// Returns at once.
    case returns
    /// Throws an error at the first change.
    case throwing
    /// Goes on when its task is cancelled.
    case stubborn

    struct Failure: Error, CustomStringConvertible {
        let description = "the ledger is spoilt"
    }

    static let present = ProcessInfo.processInfo.environment["VARYING_CODE"].flatMap {
        OwnCode(rawValue: $0)
    }

    func run(_ node: Node, ready: @Sendable () -> Void) async throws {
        let ledger = try await node.store(OldLedger.self)
        report("began", ledger.total)
        switch self {
        case .serves:
            for await total in ledger.changed(\.total).values where total == 10 {
                report("saw", total)
                ready()
            }
            report("cancelled", ledger.total)
        case .returns: return
        case .throwing:
            ready()
            for await total in ledger.changed(\.total).values where total != 0 { throw Failure() }
        case .stubborn:
            ready()
            await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
        }
    }

    private func report(_ event: String, _ total: Int) {
        print(#"{"event":"\#(event)","total":\#(total)}"#)
        fflush(nil)
    }
}
