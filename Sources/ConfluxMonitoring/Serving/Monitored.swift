/// The functions that the server calls to read published numbers. It calls them on its thread, one after the
/// other. They must not block.
package struct Monitored: Sendable {
    /// The metrics.
    package var metrics: @Sendable () -> [MetricFamily]
    /// Why the process makes no progress; empty if it does.
    package var livenessFaults: @Sendable () -> [String]
    /// Why it does not do its work; empty if it does.
    package var readinessFaults: @Sendable () -> [String]

    /// Makes the functions to serve.
    package init(
        metrics: @escaping @Sendable () -> [MetricFamily],
        livenessFaults: @escaping @Sendable () -> [String],
        readinessFaults: @escaping @Sendable () -> [String]
    ) {
        self.metrics = metrics
        self.livenessFaults = livenessFaults
        self.readinessFaults = readinessFaults
    }
}
