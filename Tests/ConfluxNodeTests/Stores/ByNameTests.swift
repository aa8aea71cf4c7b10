import Conflux
import Testing

@testable import ConfluxNode
@testable import ConfluxProtocol

/// The order of reports must not depend on a hash table, whose order is different in each process.
struct ByNameTests {
    @Test func `values are in the order of their names, whatever is added and removed`() {
        var values = ByName<Int, String>()
        for key in [5, 3, 9, 1, 7, 3] { values[key] = "\(key)" }
        #expect(values.values == ["1", "3", "5", "7", "9"])
        values[5] = nil
        values[4] = nil
        values[9] = "nine"
        #expect(values.values == ["1", "3", "7", "nine"])
        #expect(values[7] == "7" && values[5] == nil && !values.isEmpty)
        values.removeAll()
        #expect(values.isEmpty && values.values.isEmpty && values[7] == nil)
    }

    @Test func `an applier goes through states in the order of their names`() throws {
        let applier = Applier(
            refusalBytesMax: 1_024, tell: { _ in }, post: { _ in }, clock: { .zero })
        let names = try (1...12).map { try #require(Name("state-\($0)")) }
        for (index, name) in names.shuffled().enumerated() {
            applier.perform(
                .register(
                    .bridge(
                        TallyState.self, name, request: UInt64(index) + 1, scope: Scope(),
                        payloadBytesMax: 1_024, completion: { _ in })))
        }
        #expect(applier.states.values.map(\.name) == names.sorted())
    }
}
