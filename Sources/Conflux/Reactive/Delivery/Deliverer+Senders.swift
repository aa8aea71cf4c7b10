import ConfluxThreads
import Synchronization

/// What senders do: one takes the role, and others leave their values or relieve the deliverer.
extension Deliverer {
    /// What a sender finds.
    @usableFromInline
    enum Turn {
        case nobodyObserves
        case delivers(Link, upTo: Int, UnsafeMutablePointer<ThreadMark>)
        case othersDeliver
    }

    /// Takes the deliverer's role if nobody has it.
    ///
    /// - Parameter hold: Called under the lock, unless others deliver.
    /// - Returns: What the sender is to do.
    @inlinable
    final func takeRole(_ hold: () -> Void) -> Turn {
        locked { state in
            guard let first = state.list.first else {
                hold()
                return .nobodyObserves
            }
            guard case .idle = state.phase else { return .othersDeliver }
            hold()
            let mark = ThreadMark.current
            state.phase = .delivering(by: mark, isOwed: true)
            return .delivers(first, upTo: state.list.number, mark)
        }
    }

    /// Ends the deliverer's role if there is nothing else to do.
    @inlinable
    final func endRole() -> Bool {
        locked { state in
            if state.hasWork { return false }
            state.phase = .idle
            return true
        }
    }

    /// Runs code that calls observers.
    @inlinable
    final func asDeliverer(_ mark: UnsafeMutablePointer<ThreadMark>, _ body: () -> Void) {
        mark.pointee.lanes += 1
        body()
        mark.pointee.lanes -= 1
    }

    /// What a sender is to do when others deliver.
    private enum Leave {
        case tryAgain
        case returns
        case waitsForRole(Latch)
        case waitsForSpace(Latch)
    }

    /// Leaves a value to the deliverer, or relieves it.
    ///
    /// - Parameters:
    ///   - tell: As in ``Delivery``.
    ///   - hold: Called under the lock when the value is added.
    /// - Returns: False if there is no deliverer any more.
    @usableFromInline
    final func leave(_ tell: @escaping (Link, _ number: Int) -> Link?, _ hold: () -> Void) -> Bool {
        let (mark, sender) = (ThreadMark.current, SenderContext.current)
        let mayWait = mark.pointee.mayWait
        var mayExceedBound = !mayWait
        while true {
            let leave = locked { state -> Leave in
                if case .idle = state.phase { return .tryAgain }
                let isSuccessor = mayWait && state.needsSuccessor
                let isAtBound = state.waiting.count >= Self.waitingCountMax
                if isAtBound, !isSuccessor, !mayExceedBound {
                    let space = Latch()
                    state.sendersAtBound.append(space)
                    return .waitsForSpace(space)
                }
                hold()
                let isOwed = isSuccessor || state.isOwed(by: mark)
                if isOwed { state.owedCount += 1 }
                state.waiting.append(
                    Delivery(
                        tell: tell, number: state.list.number, sender: sender, isOwed: isOwed))
                state.hasWork = true
                guard isSuccessor else { return .returns }
                let relief = Latch()
                state.successor = .waits(mark, relief)
                return .waitsForRole(relief)
            }
            switch leave {
            case .tryAgain: return false
            case .returns: return true
            case .waitsForSpace(let space):
                mayExceedBound = !space.wait(for: Self.patience)
            case .waitsForRole(let relief):
                relief.wait(for: Self.patience)
                if hasRole(after: relief) { asDeliverer(mark) { goOn(mark) } }
                return true
            }
        }
    }

    /// Whether the deliverer has left its role to this sender, which waited for it. If not, the
    /// sender gives up.
    private func hasRole(after relief: Latch) -> Bool {
        locked { state in
            guard case .waits(_, let awaited) = state.successor, awaited === relief else {
                return true
            }
            state.successor = .hasGivenUp
            return false
        }
    }
}
