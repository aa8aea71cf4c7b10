import Conflux
import ConfluxVocabulary

extension NodeCore {
    /// Reports when this node can't tell a store that time has passed.
    func reportTicks<S: ReplicatedState>(of core: StoreCore<S>, _ name: StoreName) {
        core.timekeeper?.reportFailures { [events] error in
            switch (error.reason as? RejectionReason)?.code {
            // The store waits, as all that is dispatched to it.
            case .frozen, .locked: return
            default: events.send(.tickFailed(name, message: error.message))
            }
        }
    }
}
