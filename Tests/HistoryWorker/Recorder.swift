import ConfluxNode
import Dispatch
import Foundation
import Synchronization

/// Writes a line for each operation that has ended: `script/histories/listappend/operations.py` says what it means.
final class Recorder: Sendable {
    /// What an operation came to.
    enum Outcome: String, Encodable { case ok, fail, unknown }

    /// What an operation is, before it begins.
    struct Operation {
        let kind: String
        var appends: [String: [Int]] = [:]
        var fresh = false
    }

    private struct Line: Encodable {
        let process, kind: String
        let begin, end: UInt64
        let outcome: Outcome
        let reads, appends: [String: [Int]]
        let fresh: Bool
    }

    private let process: String
    private let encoder = Mutex(JSONEncoder())

    init(process: String) {
        self.process = process
        encoder.withLock { $0.outputFormatting = .sortedKeys }
    }

    /// Performs an operation, and writes its line.
    ///
    /// - Parameters:
    ///   - operation: What it is.
    ///   - body: Performs it, and returns the lists that it has read.
    /// - Throws: If the line can't be encoded. What the body throws is the outcome.
    func record(
        _ operation: Operation, _ body: () async throws -> [String: [Int]]
    ) async throws {
        let begin = Self.now
        var (reads, outcome) = ([String: [Int]](), Outcome.ok)
        do {
            reads = try await body()
        } catch {
            outcome = Self.outcome(of: error)
        }
        let line = Line(
            process: process, kind: operation.kind, begin: begin, end: Self.now, outcome: outcome,
            reads: reads, appends: operation.appends, fresh: operation.fresh)
        try encoder.withLock { encoder in
            print(String(decoding: try encoder.encode(line), as: UTF8.self))
            fflush(nil)
        }
    }

    /// What an error says about the operation.
    private static func outcome(of error: any Error) -> Outcome {
        guard let error = error as? DispatchError else { return .fail }
        // It is in the log, but this process has not seen that it is applied.
        if error.receipt != nil { return .unknown }
        return switch error.code {
        case .timedOut, .outcomeUnknown, .cancelled: .unknown
        default: .fail
        }
    }

    /// The time of a clock that all processes of the machine share.
    private static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }
}
