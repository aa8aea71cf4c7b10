extension Lane {
    /// Tries to enter the lane, for a short while if another thread serves it.
    @inline(__always)
    func enterNow(_ mark: UnsafeMutablePointer<ThreadMark>) -> Machine.Entrance {
        let entrance = enter(mark)
        return entrance == .busy ? enterSoon(mark) : entrance
    }

    @inline(never)
    private func enterSoon(_ mark: UnsafeMutablePointer<ThreadMark>) -> Machine.Entrance {
        guard mark.pointee.mayWait else { return .busy }
        for look in 1...LaneLimits.looksMax {
            ThreadMark.pause()
            guard look % LaneLimits.looksPerTry == 0 else { continue }
            let entrance = enter(mark)
            if entrance != .busy { return entrance }
        }
        return .busy
    }

    /// Runs the lane's work where it belongs.
    @inline(__always)
    func run(_ mark: UnsafeMutablePointer<ThreadMark>, _ body: () -> Void) {
        mark.pointee.lanes += 1
        if isInPlace { body() } else { runInPlace(body) }
        mark.pointee.lanes -= 1
    }

    /// Whether the current code runs where jobs run.
    @inline(__always)
    private var isInPlace: Bool {
        guard let place else { return true }
        return place._withUnsafeGuaranteedRef { $0.isCurrent }
    }

    @inline(never)
    private func runInPlace(_ body: () -> Void) {
        home?.run(body)
    }
}
