/// What the keys of `conflux top` have chosen.
struct TopChoice: Sendable, Equatable {
    /// The order of the nodes, and of the stores.
    enum Order: String, Sendable, CaseIterable {
        case number, name, lag, rate
    }

    enum Key: Equatable {
        case text(Character)
        case up, down, pageUp, pageDown, escape, enter, erase
    }

    /// The most characters of a filter.
    static let filterMax = 40
    private static let page = 10

    var order = Order.number
    /// Nodes, stores and entries without this text are left out.
    var filter = ""
    /// Whether the filter is being typed.
    var isTyping = false
    var isHelping = false
    /// How many rows of each table are above the screen.
    var offset = 0

    /// What the keys do, for the screen.
    static let help = [
        ("up, down, page up, page down", "scroll the nodes and the stores"),
        ("s", "sort by number, name, lag or rate"),
        ("/", "filter nodes, stores and entries by a text; Enter keeps it, Esc clears it"),
        ("?", "show or hide this help"), ("q", "quit"),
    ]

    /// The keys in what a terminal has sent at once.
    static func keys(in bytes: [UInt8]) -> [Key] {
        var keys: [Key] = []
        var rest = bytes[...]
        let sequences: [([UInt8], Key)] = [
            (Array("\u{1B}[A".utf8), .up), (Array("\u{1B}[B".utf8), .down),
            (Array("\u{1B}OA".utf8), .up), (Array("\u{1B}OB".utf8), .down),
            (Array("\u{1B}[5~".utf8), .pageUp), (Array("\u{1B}[6~".utf8), .pageDown),
        ]
        while let byte = rest.first {
            if let (sequence, key) = sequences.first(where: { rest.starts(with: $0.0) }) {
                keys.append(key)
                rest = rest.dropFirst(sequence.count)
                continue
            }
            // Of another key, nothing is text.
            if byte == 0x1B, rest.count > 1 { break }
            rest = rest.dropFirst()
            switch byte {
            case 0x1B: keys.append(.escape)
            case 0x0A, 0x0D: keys.append(.enter)
            case 0x08, 0x7F: keys.append(.erase)
            case 0x20...0x7E: keys.append(.text(Character(UnicodeScalar(byte))))
            default: continue
            }
        }
        return keys
    }

    /// Takes a key.
    ///
    /// - Returns: Whether the command ends.
    mutating func take(_ key: Key) -> Bool {
        if isTyping {
            type(key)
            return false
        }
        switch key {
        case .text("q"): return true
        case .text("s"):
            let all = Order.allCases
            order = all[((all.firstIndex(of: order) ?? 0) + 1) % all.count]
        case .text("/"): (isTyping, isHelping) = (true, false)
        case .text("?"), .text("h"): isHelping.toggle()
        case .up, .text("k"): offset = max(0, offset - 1)
        case .down, .text("j"): offset += 1
        case .pageUp: offset = max(0, offset - Self.page)
        case .pageDown: offset += Self.page
        case .escape: (isHelping, filter, offset) = (false, "", 0)
        case .text, .enter, .erase: break
        }
        return false
    }

    private mutating func type(_ key: Key) {
        offset = 0
        switch key {
        case .text(let character):
            if filter.count < Self.filterMax { filter.append(character) }
        case .erase: filter = String(filter.dropLast())
        case .enter: isTyping = false
        case .escape: (isTyping, filter) = (false, "")
        case .up, .down, .pageUp, .pageDown: break
        }
    }
}
