import Conflux
import ConfluxNode
import ConfluxProtocol
import ConfluxVocabulary

extension Truth {
    /// Checks what the log tells now about every action that was sent, by its token (P5). The answers stay the same
    /// however the log goes on, so this also checks those that were given before.
    ///
    /// - Returns: The answers that there were.
    @discardableResult
    func checkTokens() throws(Violation) -> Set<Mark> {
        var marks: Set<Mark> = []
        for record in records.values {
            guard let token = record.handle.token else { continue }
            switch answer(to: token) {
            case .success(let receipt):
                marks.insert(.tokenFound)
                try require(
                    token.log == branch.log && branch.fact(receipt.sequence)?.record === record
                        && branch.commit(containing: receipt.sequence)?.epoch == receipt.epoch,
                    "P5", "the log has another action than \(record.text) at \(receipt.sequence)")
            case .failure(let error) where error.code == .rejected:
                marks.insert(.tokenExcluded)
                if let place = branch.place(of: record) {
                    throw Violation(
                        "P5", "\(record.text) is said never to be in the log, and is at \(place)")
                }
            case .failure: marks.insert(.tokenUnknown)
            case nil: marks.insert(.tokenOpen)
            }
        }
        return marks
    }

    private func answer(to token: DispatchToken) -> Result<Receipt, DispatchError>? {
        var search = OutcomeSearch(for: token)
        let first = branch.fact(token.since.sequence)?.commit ?? branch.commits.count
        for (_, commit) in branch.commits[first...] {
            if let result = search.take(commit) { return result }
        }
        return nil
    }
}
