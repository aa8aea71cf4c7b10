import Foundation
import Testing

/// Tests whether the simulator can fail. A copy of the sources with all mistakes is built once, in release
/// mode, and then each mistake is chosen in turn. `script/simulate --planted` runs it.
@Suite(.serialized)
struct PlantedBugTests {
    /// The number of seeds within which a mistake must be found.
    private static let seedsMax = 3_000

    @Test func `every planted mistake has a place in the code`() throws {
        var sources = try PlantedTree.sources(of: PlantedTree.repository)
        try PlantedTree.plant(PlantedBug.all, in: &sources)
    }

    @Test func `planted mistakes have distinct names`() {
        #expect(Set(PlantedBug.all.map(\.name)).count == PlantedBug.all.count)
    }

    /// Which mistakes to try: `all`, one in six of them as `1/6`, drawn anew, or a part of their names. With
    /// `none`, the copy is only written.
    private static let wanted = ProcessInfo.processInfo.environment["CONFLUX_PLANT"]

    /// The numbers of the mistakes to try.
    private static func chosen(_ wanted: String) throws -> [Int] {
        let numbers = Array(PlantedBug.all.indices)
        switch wanted {
        case "all": return numbers
        case "none": return []
        default: break
        }
        if let share = wanted.wholeMatch(of: /1\/([1-9][0-9]*)/), let parts = Int(share.1) {
            let count = (numbers.count + parts - 1) / parts
            return numbers.shuffled().prefix(count).sorted()
        }
        let matching = numbers.filter { PlantedBug.all[$0].name.contains(wanted) }
        try #require(!matching.isEmpty, "no mistake has this in its name: \(wanted)")
        return matching
    }

    @Test(.enabled(if: wanted != nil))
    func `the simulator finds every mistake`() throws {
        let root = PlantedTree.repository
        let tree = PlantedTree(root: root, folder: root.appending(path: ".build/planted"))
        var sources = try PlantedTree.sources(of: root)
        try PlantedTree.plant(PlantedBug.all, in: &sources)
        try tree.write(sources)
        let chosen = try Self.chosen(Self.wanted ?? "all")
        if chosen.isEmpty { return }
        let build = try run(
            "swift", ["build", "-c", "release", "--product", "conflux-simulate"], in: tree.folder)
        try #require(build.status == 0, "\(build.output.suffix(4_000))")
        let program = tree.folder.appending(path: ".build/release/conflux-simulate").path

        let sound = try run(program, ["--count", "50"], in: tree.folder)
        #expect(sound.status == 0, "without a mistake nothing is found: \(sound.output)")
        for number in chosen {
            let bug = PlantedBug.all[number]
            let options =
                (bug.fault.map { ["--with", $0] } ?? [])
                + (bug.world.map { ["--world", $0] } ?? [])
                + (bug.states.map { ["--states", $0] } ?? [])
            let found = try run(
                program, ["--count", "\(Self.seedsMax)", "--expect-violation"] + options,
                in: tree.folder, planted: number + 1)
            // A trap ends the program. In that case the simulation has found the mistake, too.
            let last = found.output.split(separator: "\n").last.map(String.init) ?? ""
            print("planted, rule \(bug.rule): \(bug.name): \(last)")
            #expect(
                found.status != 1, "rule \(bug.rule), \(bug.name): survived \(Self.seedsMax) seeds")
            // A failure that the seed also has without the mistake is not due to the planted one.
            if let match = last.firstMatch(of: /seed ([0-9]+):/) {
                let without = try run(
                    program, ["--seed", String(match.1)] + options, in: tree.folder)
                #expect(
                    without.status == 0,
                    "\(bug.name): without it, too: \(without.output.suffix(500))")
            }
        }
    }

    private func run(
        _ program: String, _ arguments: [String], in folder: URL, planted: Int = 0
    ) throws -> (status: Int32, output: String) {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.currentDirectoryURL = folder
        var environment = ProcessInfo.processInfo.environment
        environment["CONFLUX_PLANTED"] = String(planted)
        environment["SWIFT_BACKTRACE"] = "enable=no"
        process.environment = environment
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: data, as: UTF8.self))
    }
}
