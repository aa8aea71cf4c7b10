import Conflux
import Spawning

/// What the consecutive runs of `conflux dispatch --resume KEY --json` have printed: each line has an
/// outcome, or had one in an earlier run.
struct ResumeProgress {
    /// For each line: the number of its entry, or nil if the line is not an action.
    var ends: [Int: UInt64?] = [:]
    let lines: [String]

    init(_ lines: [String]) { self.lines = lines }

    /// Takes the results of one run. Empty lines have none.
    ///
    /// - Parameters:
    ///   - output: What the run printed.
    ///   - isWhole: Whether the run ended by itself.
    /// - Throws: ``Failure`` if a line has another outcome than before, or none.
    mutating func take(_ output: [String], isWhole: Bool) throws {
        let expected = lines.indices.filter { !lines[$0].isEmpty }.map { $0 + 1 }
        for (line, text) in zip(expected, output) {
            // The last line of a killed process may be incomplete.
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
