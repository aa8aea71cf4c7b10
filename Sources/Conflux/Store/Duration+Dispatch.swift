import Dispatch

extension Duration {
    /// The same as Dispatch has it: at most 292 years, and what is longer is never.
    package var dispatchInterval: DispatchTimeInterval {
        let (seconds, attoseconds) = components
        let (whole, isTooLong) = Int(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        let (all, isStillTooLong) = whole.addingReportingOverflow(
            Int(attoseconds / 1_000_000_000))
        return isTooLong || isStillTooLong ? .never : .nanoseconds(all)
    }
}
