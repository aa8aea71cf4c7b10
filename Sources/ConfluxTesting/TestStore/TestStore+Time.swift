import Conflux
import ConfluxVocabulary

/// The time of a test.
extension TestStore {
    /// The time that the contexts of the store's next actions have. It is the system's, until the test sets it, or
    /// advances it. From then on it stands still.
    ///
    /// ```swift
    /// cart.time = Timestamp(0)
    /// await cart.send(.reserve) { $0.reservedAt = Timestamp(0) }
    /// cart.advance(by: .seconds(31))
    /// await cart.send(.pay, failing: .refused)
    /// ```
    ///
    /// If the state is a `ScheduledModel`, setting the time also fires what is due by then: the store commits one
    /// `timePassed`, which the test receives. From then on, nothing fires by the system's clock.
    ///
    /// Other stores have times of their own. If a node hosts the store, the sequencer gives the time, and this has no
    /// effect; nor has it in a `Transaction`.
    public var time: Timestamp {
        get { store.core.now }
        set {
            store.core.givenTime.store(newValue.rawValue, ordering: .relaxed)
            store.core.timekeeper?.set(to: newValue)
        }
    }

    /// Moves the time on. The next actions of the store have the new one.
    ///
    /// - Parameter duration: How far; a negative one moves the time back.
    public func advance(by duration: Duration) { time = time + duration }
}
