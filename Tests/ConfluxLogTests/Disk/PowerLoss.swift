import ConfluxVocabulary
import Foundation
import Testing

@testable import ConfluxLog

/// Which of the unsynced data survives a power loss.
enum Survival: Hashable, CaseIterable, CustomTestStringConvertible {
    case nothing
    case everything
    /// Random sectors, so that writes are torn and out of order.
    case someSectors

    var testDescription: String {
        switch self {
        case .nothing: "nothing"
        case .everything: "everything"
        case .someSectors: "some sectors"
        }
    }
}

extension LosingDisk.Image {
    /// The smallest unit that a disk writes atomically.
    private static let sectorBytes = 512

    /// The files after a power loss.
    func files(
        after survival: Survival, using random: inout some RandomNumberGenerator
    ) -> [LosingDisk.Part: [UInt8]] {
        var files = durable
        guard survival != .nothing else { return files }
        for (part, changes) in pending {
            for change in changes {
                switch (survival, change) {
                case (.someSectors, .write(let offset, let bytes)):
                    var start = 0
                    while start < bytes.count {
                        let sector = (offset + start) / Self.sectorBytes
                        let end = min(bytes.count, (sector + 1) * Self.sectorBytes - offset)
                        if Bool.random(using: &random) {
                            LosingDisk.Change.write(
                                offset: offset + start, bytes: Array(bytes[start..<end])
                            ).apply(to: &files[part, default: []])
                        }
                        start = end
                    }
                case (.someSectors, .truncate):
                    if Bool.random(using: &random) { change.apply(to: &files[part, default: []]) }
                default: change.apply(to: &files[part, default: []])
                }
            }
        }
        return files
    }
}

extension TemporaryFolder {
    /// A folder with the files that are there after a power loss.
    convenience init(holding files: [LosingDisk.Part: [UInt8]]) throws {
        self.init(isQuick: true)
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true)
        for (part, bytes) in files {
            try Data(bytes).write(to: URL(fileURLWithPath: "\(path)/\(part.name)"))
        }
    }
}

/// Random numbers that a seed decides.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// Which of a run's many places are tried: as many as take some seconds, or as the environment says.
/// They are evenly spaced, and the first one is random. To try all places takes half an hour.
struct Selection {
    let places: [Int]

    init(of count: Int, atMost limit: Int) {
        let wanted = ProcessInfo.processInfo.environment["CONFLUX_DISK_PLACES"].flatMap { Int($0) }
        let step = max(1, count / max(1, wanted ?? limit))
        places = Array(stride(from: Int.random(in: 0..<step), to: count, by: step))
    }
}
