import Conflux
import ConfluxProtocol
import ConfluxVocabulary

/// The actions of one state in a history.
package enum HistoryActions {
    /// Reads actions in their order.
    ///
    /// - Parameters:
    ///   - state: The state.
    ///   - path: The file.
    ///   - countMax: The most actions to read. The file is checked to its end nevertheless.
    /// - Returns: At least one action. Those that this program can't decode are left out.
    /// - Throws: ``HistoryError``, also if there is none.
    package static func read<S: BridgedState>(
        of state: S.Type, in path: String, countMax: Int
    ) throws(HistoryError) -> [S.Action] {
        let coder = ActionCoder<S.Action>(sizeBytesMax: .max)
        let reader = try HistoryReader(path)
        var actions: [S.Action] = []
        while let section = try reader.read() {
            guard case .commit(let commit) = section else { continue }
            for case .batch(_, let batch) in commit.blocks {
                let isWanted = batch.targets.map { row in
                    row.target.states.contains { $0.text == S.name }
                }
                batch.forEachEntry { row, payload in
                    guard actions.count < countMax, isWanted[row] else { return }
                    let (target, coding) = (batch.targets[row].target, batch.targets[row].coding)
                    // A replica refuses what it can't decode. Nobody can dispatch it again.
                    let action =
                        if case .event(let event, _) = target {
                            try? S.eventHandlers?.action(ofEvent: event, payload, as: coding)
                        } else {
                            try? coder.decode(payload, as: coding)
                        }
                    if let action { actions.append(action) }
                }
            }
        }
        guard !actions.isEmpty else {
            throw HistoryError(
                code: .unknownState,
                message: """
                    The history \(path) has no action of the state \(S.name) that this program can decode. Export \
                    another range.
                    """)
        }
        return actions
    }
}
