import Conflux

/// A room: who is in it, and the last lines that were said.
public struct Room: Model, Equatable {
    /// The state's name. It is the same in every process.
    public static let name = "room"
    /// The most lines that a room keeps. The log has the older ones.
    public static let linesMax = 100
    /// The most bytes of a line.
    public static let lineBytesMax = 1_000

    /// What can happen in a room.
    public enum Action: Codable, Sendable, Equatable {
        /// Somebody enters.
        case join(name: String)
        /// Somebody says something.
        case say(name: String, text: String)
        /// Somebody leaves.
        case leave(name: String)
    }

    /// A line in the room: something that was said, or somebody who entered or left.
    public struct Line: Codable, Sendable, Equatable {
        /// Counts the lines of the room, from 1.
        public let number: Int
        /// The name of the person.
        public let name: String
        /// What was said; nil if the person entered or left.
        public let text: String?
        /// Whether the person is in the room afterwards.
        public let isPresent: Bool
    }

    /// The names of the people in the room.
    public private(set) var present: [String] = []
    /// The last lines, the newest one at the end.
    public private(set) var lines: [Line] = []
    private var lineCount = 0

    /// An empty room.
    public init() {}

    /// Refuses a name that is taken, and words of a person who is not in the room. Every process has the same room,
    /// so it decides in the same way.
    public func check(_ action: Action, _ context: ActionContext) throws {
        switch action {
        case .join(let name):
            guard !name.isEmpty, name.utf8.count <= 40 else { throw Refusal.badName }
            guard !present.contains(name) else { throw Refusal.nameTaken(name) }
        case .say(let name, let text):
            guard present.contains(name) else { throw Refusal.notHere(name) }
            guard text.utf8.count <= Self.lineBytesMax else { throw Refusal.tooLong }
        case .leave(let name):
            guard present.contains(name) else { throw Refusal.notHere(name) }
        }
    }

    /// Changes the room by an action that passed the check.
    public mutating func apply(_ action: Action, _ context: ActionContext) {
        switch action {
        case .join(let name):
            present.append(name)
            present.sort()
            add(name, nil, isPresent: true)
        case .say(let name, let text): add(name, text, isPresent: true)
        case .leave(let name):
            present.removeAll { $0 == name }
            add(name, nil, isPresent: false)
        }
    }

    private mutating func add(_ name: String, _ text: String?, isPresent: Bool) {
        lineCount += 1
        lines.append(Line(number: lineCount, name: name, text: text, isPresent: isPresent))
        if lines.count > Self.linesMax { lines.removeFirst() }
    }
}

/// Why an action was refused.
public enum Refusal: Error, Equatable, CustomStringConvertible {
    case badName, tooLong
    case nameTaken(String), notHere(String)

    /// The reason, for people.
    public var description: String {
        switch self {
        case .badName: "a name has 1 to 40 bytes"
        case .tooLong: "a line has at most \(Room.lineBytesMax) bytes"
        case .nameTaken(let name): "\(name) is in the room already; choose another name"
        case .notHere(let name): "\(name) is not in the room"
        }
    }
}

extension Room.Line: CustomStringConvertible {
    /// The line for a terminal.
    public var description: String {
        if let text { return "\(name): \(text)" }
        return isPresent ? "* \(name) came in" : "* \(name) left"
    }
}
