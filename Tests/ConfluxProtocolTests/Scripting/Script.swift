import Foundation

/// A scenario as text: a title, a description, and commands, each with its effects.
///
/// ```
/// A node joins
///
/// Its welcome follows the commit of its joined entry.
/// ---
/// start
///   sequencer → log          append 1 (synced): claim of epoch 1
///
/// join alpha
///   alpha → sequencer        hello
/// ```
///
/// Commands start at the margin, effects are indented, and blank lines are ignored.
struct Script {
    struct Command: Equatable {
        /// The number of its line, from 1.
        var line: Int
        var words: [String]
        /// The golden effects, without their indentation.
        var effects: [String] = []

        var text: String { words.joined(separator: " ") }
    }

    /// A mistake in a script, and its place.
    struct Fault: Error, Equatable, CustomStringConvertible {
        var line: Int
        var message: String
        var description: String { "line \(line): \(message)" }
    }

    /// The title and the description, as they are written above the three dashes.
    var head: String
    var commands: [Command]

    static let rule = "---"
    static let indentation = "  "

    init(_ text: String) throws(Fault) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard let end = lines.firstIndex(of: Self.rule) else {
            throw Fault(line: lines.count, message: "a line of three dashes ends the prose")
        }
        let prose = lines[..<end]
        guard let title = prose.first, !title.isEmpty,
            prose.dropFirst().contains(where: { !$0.isEmpty })
        else {
            throw Fault(line: 1, message: "a script begins with its title and what it shows")
        }
        head = prose.joined(separator: "\n")
        commands = []
        for (index, line) in lines.enumerated().dropFirst(end + 1) where !line.isEmpty {
            if line.hasPrefix(Self.indentation) {
                guard !commands.isEmpty else {
                    throw Fault(line: index + 1, message: "an effect stands below its command")
                }
                commands[commands.count - 1].effects.append(
                    String(line.dropFirst(Self.indentation.count)))
            } else {
                let words = line.split(separator: " ").map(String.init)
                commands.append(Command(line: index + 1, words: words))
            }
        }
        guard !commands.isEmpty else {
            throw Fault(line: end + 1, message: "a script has at least one command")
        }
    }

    /// The whole text, with the given effects.
    var text: String {
        var lines = [head, Self.rule]
        var isApart = false
        for command in commands {
            // Commands without effects have no blank line between them.
            if isApart || (!command.effects.isEmpty && lines.count > 2) { lines.append("") }
            lines.append(command.text)
            lines += command.effects.map { Self.indentation + $0 }
            isApart = !command.effects.isEmpty
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// A readable comparison of a command's effects with the golden ones: common lines, golden ones that are
    /// missing, and new ones.
    static func difference(golden: [String], found: [String]) -> String {
        let changes = found.difference(from: golden)
        var removed: Set<Int> = []
        var inserted: Set<Int> = []
        for change in changes {
            switch change {
            case .remove(let offset, _, _): removed.insert(offset)
            case .insert(let offset, _, _): inserted.insert(offset)
            }
        }
        var lines: [String] = []
        var old = 0
        var new = 0
        while old < golden.count || new < found.count {
            if removed.contains(old) {
                lines.append("- " + golden[old])
                old += 1
            } else if inserted.contains(new) {
                lines.append("+ " + found[new])
                new += 1
            } else {
                lines.append("  " + found[new])
                old += 1
                new += 1
            }
        }
        return lines.joined(separator: "\n")
    }
}
