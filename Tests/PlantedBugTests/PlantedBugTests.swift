import Foundation
import Testing

/// The mistakes that the simulator must find. `script/simulate --planted` writes a copy of the sources with all of
/// them, builds it once, and chooses each mistake in turn.
struct PlantedBugTests {
    @Test func `every planted mistake has a place in the code`() throws {
        var sources = try PlantedTree.sources(of: PlantedTree.repository)
        try PlantedTree.plant(PlantedBug.all, in: &sources)
    }

    @Test func `planted mistakes have distinct names`() {
        #expect(Set(PlantedBug.all.map(\.name)).count == PlantedBug.all.count)
    }

    /// Set while `script/simulate --plant` writes the copy.
    private static let isWanted = ProcessInfo.processInfo.environment["CONFLUX_PLANT"] != nil

    @Test(.enabled(if: isWanted)) func `the copy is written`() throws {
        let root = PlantedTree.repository
        let tree = PlantedTree(root: root, folder: root.appending(path: ".build/planted"))
        var sources = try PlantedTree.sources(of: root)
        try PlantedTree.plant(PlantedBug.all, in: &sources)
        try tree.write(sources)
        try tree.write(PlantedBug.all)
    }
}
