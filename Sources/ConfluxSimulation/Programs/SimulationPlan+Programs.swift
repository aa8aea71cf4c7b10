/// Plans for worlds in which programs run.
extension SimulationPlan {
    /// Leaves out what takes back entries that were acknowledged, since a program relies on its receipts: a log that loses
    /// its end or is damaged, stores that are dropped, entries that are skipped. And leaves enough time between faults for
    /// programs to get on.
    ///
    /// - Parameter duration: How long faults last at least. The longer, the rarer they are.
    mutating func suitPrograms(lasting duration: Duration) {
        durability = .fsync
        (oldCopyEvery, damageEvery, poisonEvery) = (nil, nil, nil)
        dropping = 0
        let factor = max(1, duration / .seconds(10))
        for fault in ClusterFault.allCases { delay(fault, by: factor) }
        crashAtEffect /= factor
    }

    private mutating func delay(_ fault: ClusterFault, by factor: Double) {
        let path = Self.path(of: fault)
        guard let interval = self[keyPath: path] else { return }
        self[keyPath: path] = max(interval, .seconds(1)) * factor
    }
}
