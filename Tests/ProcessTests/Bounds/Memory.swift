import Foundation
import Spawning
import Testing

#if os(Linux)
    /// The resident memory of a process, as the system reports it.
    struct Memory: CustomStringConvertible {
        let residentBytes: Int
        let peakBytes: Int

        init(of child: Child) throws {
            let status = try String(
                contentsOfFile: "/proc/\(child.processID)/status", encoding: .utf8)
            func bytes(_ name: String) throws -> Int {
                let line = status.split(separator: "\n").first { $0.hasPrefix("\(name):") }
                let words = line?.split(whereSeparator: \.isWhitespace)
                guard let words, words.count == 3, let number = Int(words[1]) else {
                    throw Failure("no \(name) in \(status)")
                }
                return number << 10
            }
            residentBytes = try bytes("VmRSS")
            peakBytes = try bytes("VmHWM")
        }

        /// How many files and sockets a process has open.
        static func descriptors(of child: Child) throws -> Int {
            try FileManager.default.contentsOfDirectory(
                atPath: "/proc/\(child.processID)/fd"
            ).count
        }

        var description: String {
            "\(residentBytes >> 20) MiB resident, \(peakBytes >> 20) MiB at most"
        }
    }

    extension Site {
        /// Expects that a sequencer never used more memory than a bound, and prints how much it used.
        func expectMemory(
            of sequencer: RunningSequencer, below boundBytes: Int, _ what: String,
            sourceLocation: SourceLocation = #_sourceLocation
        ) throws {
            let memory = try Memory(of: sequencer.child)
            print("bounds: \(what): \(memory); the bound is \(boundBytes >> 20) MiB")
            #expect(memory.peakBytes < boundBytes, "\(what)", sourceLocation: sourceLocation)
        }
    }
#endif
