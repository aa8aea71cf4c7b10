import ConfluxNode
@_exported import struct ConfluxNode.HistoryError
@_exported import struct ConfluxNode.ReplayDifference
@_exported import struct ConfluxNode.ReplayReport
@_exported import struct ConfluxNode.ReplayedState

/// Runs a history of production with the code at hand, and compares what comes of it.
///
/// ```swift
/// @Test func `this version agrees with production`() throws {
///     let report = try replay("Histories/may.recording", with: .model(Stock.self))
///     #expect(report.difference == nil, "\(report)")
/// }
/// ```
///
/// `conflux log export` writes a history. A log has neither outcomes nor digests, so a history has two kinds of
/// expected values: snapshots of the log, which production's replicas agreed on, and what ``record(_:to:with:)`` noted.
/// The replay ends at the first difference. It applies entries with the same code as a node: skipped entries have no
/// effect, frozen stores get none, and stores begin and end where they did in the log.
///
/// The whole file is read and checked before the first entry is applied. An action that ends the process ends the test.
///
/// - Parameters:
///   - path: The file.
///   - states: The states of its stores.
/// - Returns: The figures, and the first difference.
/// - Throws: `HistoryError` if the file can't be used, or has nothing to compare with.
public func replay(
    _ path: String, with states: ReplayedState...
) throws(HistoryError) -> ReplayReport {
    try HistoryReplay(path, with: states, ValueText.line).compare()
}

/// Runs a history with the code at hand, and writes it to another file with what came of it.
///
/// The recording has the outcome of every action, and the digest of a store's state behind each of its actions, or behind
/// every few if the state is large. Later versions are compared with it by ``replay(_:with:)``. What was recorded before
/// is replaced.
///
/// - Parameters:
///   - path: The file that `conflux log export` wrote.
///   - target: The file to write. It appears whole or not at all. If the code at hand differs from a snapshot of the log,
///     it is not written, and the report says where.
///   - states: The states of its stores.
/// - Returns: The figures, and the first difference from a snapshot of the log.
/// - Throws: `HistoryError` if a file can't be used, or a replay would have nothing to compare with.
public func record(
    _ path: String, to target: String, with states: ReplayedState...
) throws(HistoryError) -> ReplayReport {
    try HistoryReplay(path, with: states, ValueText.line).record(to: target)
}
