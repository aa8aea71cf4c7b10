/// Something that is under way in a scope and ends later: a dispatch in a mode, or an operation.
///
/// It begins when others have ended: those that it is told to wait for, and, if it is serial, the
/// one before it in its series. Its handle reports its own end.
final class Undertaking: Sendable {
    /// The lock whose holder asked for it. It runs under that lock, even if it begins later.
    let held = FlowLock.held
    /// The cascade that it belongs to, or begins; nil for none.
    let cascade: Cascade?
    private let others: [DispatchHandle]
    private let block: OutcomeBlock

    /// Makes an undertaking that has not begun.
    ///
    /// - Parameters:
    ///   - scope: Where it is made.
    ///   - others: What it waits for.
    ///   - isSerial: Whether it follows earlier serial undertakings. If so, later ones wait for it,
    ///     and for what follows from it.
    ///   - isOperation: Whether it may wait for what it dispatches itself before it ends.
    init(
        in scope: Scope, after others: [DispatchHandle], isSerial: Bool, isOperation: Bool = false
    ) {
        block = OutcomeBlock()
        let handle = DispatchHandle(block: block, index: block.reserve())
        let here = Cascade.current(in: scope)
        var before: DispatchHandle?
        if let here, others.allSatisfy(here.members.covers), here.members.add(block) {
            if isSerial, isOperation {
                // The serial dispatches that it makes must not wait for it. So they get a cascade
                // inside the cascade.
                let own = Cascade(in: scope, with: block)
                _ = here.members.add(own)
                own.members.handle.whenEnded { _ in here.members.remove(own) }
                handle.whenEnded { [block] _ in here.members.remove(block) }
                before = here.series.add(own.members.handle)
                cascade = own
            } else {
                cascade = here
                if isSerial { before = here.series.add(handle) }
            }
        } else {
            cascade = isSerial ? Cascade(in: scope, with: block) : nil
            // It waits for something outside the cascade. That may wait for the cascade's end, and
            // so does all that is in series behind the cascade. So it waits for nothing else.
            if isSerial, here == nil {
                before = scope.currentSeries.add(cascade?.members.handle ?? handle)
            }
        }
        self.others = others + (before.map { [$0] } ?? [])
    }

    /// The handle to wait for its end with.
    var handle: DispatchHandle { DispatchHandle(block: block, index: 0) }

    /// Calls a function once when it can begin: at once, or on the thread that ends the last
    /// of what it waits for, holding no lock.
    func whenReady(_ begin: @escaping @Sendable () -> Void) {
        let rest = Countdown(others.count + 1, begin)
        for other in others {
            // This may be a dispatch of any kind, whose end is reported by a thread that others
            // need.
            other.whenEnded { _ in ThreadMark.current.neededByOthers { rest.count() } }
        }
        rest.count()
    }

    /// Says how it ended.
    func end(_ outcome: Outcome) {
        block.settle(from: 0, with: outcome)
        cascade?.members.remove(block)
    }
}
