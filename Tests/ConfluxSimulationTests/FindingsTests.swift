import Testing

@testable import ConfluxSimulate
@testable import ConfluxSimulation

/// How a campaign groups its findings.
struct FindingsTests {
    private func report(_ seed: UInt64, _ promise: String, _ message: String) -> SimulationReport {
        SimulationReport(
            seed: seed, steps: 1, simulated: .zero, marks: Marks(),
            violation: Violation(promise, message), trace: [])
    }

    @Test func `violations that differ only in numbers are one kind`() {
        var findings = Findings()
        for seed in UInt64(1)...8 {
            findings.add(report(9 - seed, "P1", "entry \(seed) differs on node \(seed + 3)"))
        }
        findings.add(report(4, "P5", "entry 1 differs on node 4"))
        #expect(findings.count == 9)
        let groups = findings.sorted
        #expect(groups.map(\.count) == [8, 1])
        #expect(groups[0].pattern == "P1: entry # differs on node #")
        #expect(groups[0].reports.map(\.seed) == [1, 2, 3, 4, 5])
        #expect(findings.first?.seed == 1)
    }

    @Test func `a seed that keeps every promise is not a finding`() {
        var findings = Findings()
        findings.add(
            SimulationReport(
                seed: 1, steps: 1, simulated: .zero, marks: Marks(), violation: nil, trace: []))
        #expect(findings.isEmpty && findings.first == nil)
    }
}
