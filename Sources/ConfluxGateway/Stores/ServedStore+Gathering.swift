import Conflux

extension ServedStore {
    /// Gathers what the lane does, and hands it over in pieces.
    final class Gathering {
        private weak let served: ServedStore?
        /// Without the limit of a payload: in JSON, an action may be longer.
        private let coder = ActionCoder<S.Action>(sizeBytesMax: 1 << 30)
        private var run: CommittedRun<S>
        private var payloadBytesEach = 0
        private var copies: [Copy] = []
        /// How many copies may be made in this run; nil before the first action.
        private var copiesLeft: Int?
        /// The index of the last action that was not refused.
        private var last: Int?

        init(of served: ServedStore) {
            self.served = served
            run = CommittedRun(coder, payloadBytesEach: 0)
        }

        func beginRun(count: Int, payloadBytes: Int) {
            payloadBytesEach = payloadBytes / max(1, count)
            copiesLeft = nil
            beginPiece()
        }

        private func beginPiece() {
            (run, copies, last) = (
                CommittedRun(coder, payloadBytesEach: payloadBytesEach), [], nil
            )
        }

        func add(
            _ action: S.Action, _ context: ActionContext, _ refusal: (any Error)?, _ state: S
        ) {
            if run.count == GatewayBounds.runMax {
                endRun()
                beginPiece()
            }
            if refusal == nil {
                last = run.count
                let left = copiesLeft ?? served?.copiesLeft ?? 0
                if left > 0 { copies.append((run.count, state.snapshot)) }
                copiesLeft = max(0, left - 1)
            }
            run.append(action, context, refusal)
        }

        func endRun() {
            guard run.count > 0 else { return }
            served?.add(run, copies, isOwed: copies.last?.index != last)
        }

        func begin(_ state: S, at position: SequenceNumber) {
            served?.add(.loaded(state.snapshot, position), hasCopy: true)
        }
    }
}
