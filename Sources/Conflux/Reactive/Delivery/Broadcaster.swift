import Synchronization

/// Delivers values to observers, each once, all in one order; ``Deliverer`` explains how.
///
/// - `Held` is what the lock guards, too: the latest value of a variable, nothing for a sink.
@usableFromInline
final class Broadcaster<Value, Held>: Deliverer, @unchecked Sendable {
    // Sendable: the deliverer's lock guards it.
    @exclusivity(unchecked) @usableFromInline var current: Held

    init(holding held: Held) {
        current = held
    }

    /// What is held.
    @inlinable
    var held: Held { locked { _ in current } }

    /// Holds something, and delivers a value to all current observers.
    ///
    /// - Parameters:
    ///   - value: What to deliver.
    ///   - held: What to hold, from the same moment on.
    @inlinable
    func send(_ value: Value, holding held: Held) {
        // Holds the former value after the exchange. It is released last, outside the lock.
        var exchanged = held
        while true {
            switch takeRole({ exchange(&exchanged) }) {
            case .nobodyObserves: return
            case .delivers(let first, let number, let mark):
                return asDeliverer(mark) {
                    if let obstacle = tell(value, from: first, upTo: number) {
                        goOn(mark, from: obstacle, upTo: number) {
                            self.tell(value, from: $0, upTo: $1)
                        }
                    } else if !endRole() {
                        goOn(mark)
                    }
                }
            case .othersDeliver:
                let isLeft = leave(
                    { self.tell(value, from: $0, upTo: $1) }, { exchange(&exchanged) })
                if isLeft { return }
            }
        }
    }

    /// Exchanges what is held, under the lock.
    @inlinable
    func exchange(_ held: inout Held) {
        // A value without a size has the address of the whole object.
        if MemoryLayout<Held>.size > 0 { swap(&current, &held) }
    }

    /// Calls the observers with a value: from one on, up to a number.
    ///
    /// - Returns: The observer at which this stopped, since it is in its first value; nil at the
    ///   end.
    @inlinable
    func tell(_ value: Value, from first: Link, upTo number: Int) -> Link? {
        var link = first
        while true {
            // The list keeps its observers during a delivery.
            let (isObstacle, next) = link._withUnsafeGuaranteedRef { observer -> (Bool, Link?) in
                if observer.number > number { return (false, nil) }
                if observer.isStarting { return (true, nil) }
                unsafeDowncast(observer, to: FunctionObserver<Value>.self).receive(value)
                return (false, observer.next.load(ordering: .acquiring))
            }
            if isObstacle { return link }
            guard let next else { return nil }
            link = next
        }
    }

    /// Calls a function with every value from now on.
    ///
    /// - Parameters:
    ///   - observation: Says for how long.
    ///   - send: The function.
    /// - Returns: A disposable that ends it.
    func add(_ observation: Observation, _ send: @escaping (Value) -> Void) -> any Disposable {
        let observer = FunctionObserver(observation, send, of: self, isStarting: false)
        append(observer) {}
        tellIfOver(observation)
        return observer
    }
}

extension Broadcaster where Held == Value {
    /// Calls a function with what is held, at once and on this thread, and then with every value.
    ///
    /// - Parameters:
    ///   - observation: Says for how long.
    ///   - send: The function.
    /// - Returns: A disposable that ends it.
    func addWithFirstValue(
        _ observation: Observation, _ send: @escaping (Value) -> Void
    ) -> any Disposable {
        let observer = FunctionObserver(observation, send, of: self, isStarting: true)
        var first: Value?
        append(observer) { first = current }
        deliverFirst(observer) { if let first { observer.receive(first) } }
        tellIfOver(observation)
        return observer
    }
}
