import Dispatch

extension Duration {
    /// The duration as an interval of Dispatch: at most 292 years. A longer one becomes never.
    package var dispatchInterval: DispatchTimeInterval {
        let (seconds, attoseconds) = components
        let (whole, isTooLong) = Int(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        let (all, isStillTooLong) = whole.addingReportingOverflow(
            Int(attoseconds / 1_000_000_000))
        return isTooLong || isStillTooLong ? .never : .nanoseconds(all)
    }
}
