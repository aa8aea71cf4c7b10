import Conflux
import Foundation
import Spawning

/// Generates actions for a document, like those of a busy application. A seed decides them.
///
/// There are few keys, so that the document stays at some megabytes however many actions there are.
/// Some keys are easily confused. Most values are small, and some have 64 KiB. The effect of an action
/// depends on chance and on the other dispatcher, so some actions are refused.
struct ActionGenerator {
    static let valueBytesMax = 64 << 10

    /// Keys that are composed, decomposed, escaped in pointers, escaped in JSON, empty, or outside the BMP.
    private static let keys = [
        "name", "caf\u{E9}", "cafe\u{301}", "\u{1F469}\u{200D}\u{1F469}\u{200D}\u{1F467}", "",
        "a/b", "a~b", "~1", "\"quoted\"", "tab\there", "\u{0}", "0", "-1", "\u{65E5}\u{672C}",
        "\u{1F1EB}\u{1F1EE}", "\u{FEFF}bom", "\u{10FFFF}", "e\u{301}e\u{301}", "back\\slash", " ",
    ]

    private var random: SplitMix64

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
    }

    /// The next action, as one line of a file.
    mutating func next() -> String {
        let action: JSONValue =
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<40: ["set": ["at": place(), "value": value()]]
            case 40..<55: ["merge": ["at": branch(), "value": patch()]]
            case 55..<65: ["remove": ["at": place()]]
            case 65..<70: ["remove": ["at": .string("/lists/\(token())/0")]]
            case 70..<85: ["increment": ["at": .string("/numbers/\(token())"), "by": amount()]]
            case 85..<97: ["append": ["at": .string("/lists/\(token())"), "value": value()]]
            // Empties a list, so that it doesn't become too long.
            case 97..<99: ["set": ["at": .string("/lists/\(token())"), "value": []]]
            // May put a value that has no members where others look for some, until it is replaced.
            default: ["set": ["at": branch(), "value": value()]]
            }
        let text = action.description
        return Bool.random(using: &random) ? text : Self.escaped(text)
    }

    // MARK: Places

    private mutating func key() -> String { Self.keys.randomElement(using: &random)! }

    /// A key as a part of a pointer (RFC 6901).
    private mutating func token() -> String {
        key().replacing("~", with: "~0").replacing("/", with: "~1")
    }

    private mutating func branch() -> JSONValue { .string("/tree/\(token())") }

    private mutating func place() -> JSONValue {
        let depth = Int.random(in: 2...4, using: &random)
        return .string("/tree" + (0..<depth).map { _ in "/\(token())" }.joined())
    }

    // MARK: Values

    /// A merge patch (RFC 7386), in which null removes.
    private mutating func patch() -> JSONValue {
        var members = JSONObject()
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            members[key()] = Bool.random(using: &random) ? .null : ["merged": value()]
        }
        return .object(members)
    }

    private mutating func amount() -> JSONValue {
        switch Int.random(in: 0..<20, using: &random) {
        case 0: .number(Double(Int.random(in: -64...64, using: &random)) / 8)
        case 1: .integer(JSONInteger(Int64.max - 7))
        default: .integer(JSONInteger(Int64.random(in: -1_000...1_000, using: &random)))
        }
    }

    private mutating func value() -> JSONValue {
        switch Int.random(in: 0..<10, using: &random) {
        case 0: [.null, .bool(Bool.random(using: &random)), .string(key())]
        case 1: .object([key(): .string(text()), key(): amount()])
        case 2: amount()
        default: .string(text())
        }
    }

    /// A text of 1 byte to 64 KiB, usually a short one.
    private mutating func text() -> String {
        let bytesMax =
            switch Int.random(in: 0..<1_000, using: &random) {
            case 0..<700: 32
            case 700..<970: 512
            case 970..<998: 8 << 10
            default: Self.valueBytesMax
            }
        let bytes = Int.random(in: 1...bytesMax, using: &random)
        // Repeating a unit is cheap, and each text still differs from the others.
        let unit = "\(Int.random(in: 0..<100_000, using: &random)) \(key())"
        var text = unit
        while text.utf8.count < bytes { text += text }
        return String(decoding: text.utf8.prefix(bytes), as: UTF8.self)
    }

    /// The same JSON, with all characters escaped that are not ASCII.
    private static func escaped(_ text: String) -> String {
        guard text.utf16.contains(where: { $0 > 0x7F }) else { return text }
        var escaped: [UInt8] = []
        for unit in text.utf16 {
            if unit <= 0x7F {
                escaped.append(UInt8(unit))
            } else {
                let digits = String(unit, radix: 16)
                escaped +=
                    Array("\\u".utf8) + Array(String(repeating: "0", count: 4 - digits.count).utf8)
                escaped += Array(digits.utf8)
            }
        }
        return String(decoding: escaped, as: UTF8.self)
    }

    /// Writes actions to a file, one in each line.
    mutating func write(_ count: Int, to path: String) throws {
        guard FileManager.default.createFile(atPath: path, contents: nil),
            let file = FileHandle(forWritingAtPath: path)
        else { throw Failure("can't write \(path)") }
        var buffer = Data()
        for _ in 0..<count {
            buffer.append(contentsOf: next().utf8)
            buffer.append(0x0A)
            if buffer.count > 1 << 20 {
                try file.write(contentsOf: buffer)
                buffer.removeAll(keepingCapacity: true)
            }
        }
        try file.write(contentsOf: buffer)
        try file.close()
    }
}
