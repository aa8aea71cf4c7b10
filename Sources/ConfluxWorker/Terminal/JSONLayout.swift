/// Lays out JSON for people. A value that fits stays on one line. Any other has one member per line.
///
/// It works on the text, so that numbers and the order of keys stay as they are.
package struct JSONLayout {
    private static let indent = 2
    private let json: [UInt8]
    private let columns: Int
    private let appearance: Appearance
    private var place = 0
    private var output: [UInt8] = []

    /// Lays a value out.
    ///
    /// - Parameters:
    ///   - json: A valid JSON text.
    ///   - appearance: Whether there are colours.
    ///   - column: How many characters of the first line are in use.
    ///   - columns: How many characters a line has; nil to keep the value on one line.
    /// - Returns: The lines, without a line break at the end.
    package static func bytes(
        _ json: some Sequence<UInt8>, _ appearance: Appearance, from column: Int = 0, columns: Int?
    ) -> [UInt8] {
        var layout = JSONLayout(
            json: Array(json), columns: columns ?? .max, appearance: appearance)
        layout.value(from: column, indent: 0)
        return layout.output
    }

    private init(json: [UInt8], columns: Int, appearance: Appearance) {
        self.json = json
        self.columns = columns
        self.appearance = appearance
    }

    /// Moves to the next character that is not a blank, and returns it.
    private mutating func next() -> Character? {
        while place < json.count, [0x20, 0x09, 0x0A, 0x0D].contains(json[place]) { place += 1 }
        return place < json.count ? Character(UnicodeScalar(json[place])) : nil
    }

    private mutating func value(from column: Int, indent: Int) {
        switch next() {
        case "{", "[":
            let isOnOneLine = columns == .max || fits(in: columns - column)
            members(isOnOneLine, indent: indent + (isOnOneLine ? 0 : Self.indent))
        case "\"": put(string(), .green)
        case .some: put(word(), .yellow)
        case nil: break
        }
    }

    /// Lays out an object or an array.
    private mutating func members(_ isOnOneLine: Bool, indent: Int) {
        let isObject = json[place] == UInt8(ascii: "{")
        var isFirst = true
        func breakLine(_ indent: Int) -> [UInt8] {
            Array("\n".utf8) + [UInt8](repeating: 0x20, count: indent)
        }
        output.append(json[place])
        place += 1
        while let character = next(), character != "}", character != "]" {
            if character == "," {
                place += 1
                output.append(UInt8(ascii: ","))
                if isOnOneLine { output.append(0x20) }
                continue
            }
            if !isOnOneLine { output += breakLine(indent) }
            var column = indent
            if isObject {
                let key = string()
                put(key, .cyan)
                _ = next()
                place += 1
                output += Array(": ".utf8)
                column += key.count + 2
            }
            value(from: column, indent: indent)
            isFirst = false
        }
        guard place < json.count else { return }
        if !isOnOneLine, !isFirst { output += breakLine(indent - Self.indent) }
        output.append(json[place])
        place += 1
    }

    /// Whether the value at the present place fits on a line, together with a comma.
    private func fits(in room: Int) -> Bool {
        var (length, depth, isInString, place) = (1, 0, false, place)
        while place < json.count, length <= room {
            let byte = json[place]
            place += 1
            switch byte {
            case UInt8(ascii: "\\") where isInString:
                length += 2
                place += 1
                continue
            case UInt8(ascii: "\""): isInString.toggle()
            case _ where isInString: break
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: ","), UInt8(ascii: ":"): length += 1
            case 0x20, 0x09, 0x0A, 0x0D: continue
            default: break
            }
            // Only the first byte of a character counts.
            if byte & 0xC0 != 0x80 { length += 1 }
            if depth == 0 { return length <= room }
        }
        return false
    }

    /// A string with its quotation marks. Characters that could control the terminal are escaped.
    private mutating func string() -> [UInt8] {
        var text = [json[place]]
        place += 1
        while place < json.count {
            let byte = json[place]
            place += 1
            if byte == 0x7F {
                text += Array("\\u007f".utf8)
            } else if byte == 0xC2, place < json.count, json[place] < 0xA0 {
                text += Array("\\u00\(String(json[place], radix: 16))".utf8)
                place += 1
            } else {
                text.append(byte)
            }
            if byte == UInt8(ascii: "\\"), place < json.count {
                text.append(json[place])
                place += 1
            } else if byte == UInt8(ascii: "\"") {
                break
            }
        }
        return text
    }

    /// A number, `true`, `false` or `null`.
    private mutating func word() -> [UInt8] {
        let start = place
        while place < json.count, !Array("{}[],: \t\r\n\"".utf8).contains(json[place]) {
            place += 1
        }
        // A character that is not valid JSON is passed on as it is.
        if place == start { place += 1 }
        return Array(json[start..<place])
    }

    private mutating func put(_ text: [UInt8], _ style: Appearance.Style) {
        output += appearance.paint(text, style)
    }
}
