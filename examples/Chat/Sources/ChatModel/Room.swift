import Conflux

/// A room: who is in it, and what was said last.
public struct Room: Model, Equatable {
    /// The same in every process.
    public static let name = "room"
    /// The most lines that a room keeps. The log has the older ones.
    public static let linesMax = 100
    /// The most bytes of a line.
    public static let lineBytesMax = 1_000

    /// What can happen in a room.
    public enum Action: Codable, Sendable, Equatable {
        /// Somebody comes in.
        case join(name: String)
        /// Somebody says something.
        case say(name: String, text: String)
        /// Somebody goes.
        case leave(name: String)
    }

    /// Something that was said, or happened.
    public struct Line: Codable, Sendable, Equatable {
        /// Counts the lines of the room, from 1.
        public let number: Int
        /// Who said it.
        public let name: String
        /// What; nil where they came or left.
        public let text: String?
        /// Whether they are in the room after it.
        public let isPresent: Bool
    }

    /// Who is in the room, by name.
    public private(set) var present: [String] = []
    /// The last lines, the newest at the end.
    public private(set) var lines: [Line] = []
    private var lineCount = 0

    /// An empty room.
    public init() {}

    /// Refuses a name that is taken, and words of somebody who is not here. Every process sees the same room, so
    /// it decides the same.
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

/// Why nothing happened in a room.
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
    /// The line as a terminal shows it.
    public var description: String {
        if let text { return "\(name): \(text)" }
        return isPresent ? "* \(name) came in" : "* \(name) left"
    }
}
