import Conflux
import Spawning

/// What the runs of `conflux dispatch --resume KEY --json` printed, one after the other: each of
/// their lines has an outcome, or had one in a run before.
struct ResumeProgress {
    /// By line: the number in the log, or nil for a line that is no action.
    var ends: [Int: UInt64?] = [:]
    let lines: [String]

    init(_ lines: [String]) { self.lines = lines }

    /// The line of each result: empty lines have none.
    ///
    /// - Parameters:
    ///   - output: What one run printed.
    ///   - isWhole: Whether it ended by itself.
    /// - Throws: ``Failure`` if a line has another outcome than before, or none.
    mutating func take(_ output: [String], isWhole: Bool) throws {
        let expected = lines.indices.filter { !lines[$0].isEmpty }.map { $0 + 1 }
        for (line, text) in zip(expected, output) {
            // What a killed process wrote last may be cut.
            guard isWhole || text.hasSuffix("}") else { break }
            let result = try object(text)
            if result[key: "resumed"] == true {
                guard result[key: "line"]?.number == UInt64(line), ends[line] != nil else {
                    throw Failure("line \(line) is resumed, and nobody printed it: \(text)")
                }
            } else if let sequence = result[key: "sequence"]?.number {
                if let known = ends[line], known != sequence {
                    throw Failure("line \(line) has two receipts: \(text)")
                }
                ends[line] = .some(sequence)
            } else {
                guard result[key: "error"]?[key: "code"] == "invalidAction",
                    lines[line - 1] == "{nonsense"
                else { throw Failure("line \(line): \(text)") }
                ends[line] = .some(nil)
            }
        }
        if isWhole, output.count != expected.count {
            throw Failure("\(output.count) results of \(expected.count) lines")
        }
    }
}
