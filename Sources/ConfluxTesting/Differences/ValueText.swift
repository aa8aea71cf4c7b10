import Conflux

/// Writes a value as lines, one for each property, so that two values can be compared by eye and line by line.
///
/// Unordered elements are sorted, so that equal values have equal lines. The text is bounded: values nested deeper
/// than ``depthMax``, and those after ``linesMax`` lines, are written as an ellipsis.
struct ValueText {
    static let depthMax = 64
    static let linesMax = 10_000
    /// An enumeration's case is written on one line if it has at most this many characters.
    private static let shortMax = 72

    /// Whether values that describe themselves are written by their parts, too.
    private let isDeep: Bool
    /// The objects that contain the current value: a cycle ends at one of them.
    private var path: Set<ObjectIdentifier> = []
    private var lineCount = 0

    private init(isDeep: Bool) {
        self.isDeep = isDeep
    }

    /// The lines of a value.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - isDeep: Whether values of the standard library and Foundation are written by their parts, too. An example
    ///     is a date, whose description leaves out fractions.
    /// - Returns: At least one line.
    static func lines(of value: Any, isDeep: Bool = false) -> [String] {
        var text = ValueText(isDeep: isDeep)
        return text.lines(value, label: nil, depth: 0)
    }

    /// A value on one line, cut off if it is long.
    static func line(of value: Any) -> String {
        let line = join(lines(of: value))
        return line.count <= 200 ? line : "\(line.prefix(200))…"
    }

    /// Joins lines to one, as in `Point(x: 1, y: 2)`. Indentation and the last comma are left out.
    private static func join(_ lines: [String]) -> String {
        var line = ""
        var isOpened = true
        for text in lines.lazy.map({ $0.trimmingPrefix(while: \.isWhitespace) }) {
            if let first = text.first, ")]}".contains(first) {
                if line.last == "," { line.removeLast() }
            } else if !isOpened {
                line += " "
            }
            line += text
            isOpened = text.last.map { "([{".contains($0) } ?? false
        }
        return line
    }

    /// An action for use in a sentence: marked as code if it can be written.
    static func quotation(of action: Any) -> String {
        let line = line(of: action)
        return action is any FunctionWrapping ? line : "`\(line)`"
    }

    private mutating func lines(_ value: Any, label: String?, depth: Int) -> [String] {
        var lines = body(value, depth: depth)
        if let label { lines[0] = "\(label): \(lines[0])" }
        lineCount += lines.count
        return lines
    }

    private mutating func body(_ value: Any, depth: Int) -> [String] {
        if let value = value as? any StringProtocol { return [String(value).debugDescription] }
        if let value = value as? JSONValue { return json(value, depth: depth) }
        if let action = value as? any ActionWrapping { return body(action.value, depth: depth) }
        if value is any FunctionWrapping { return ["an unnamed commit"] }
        let mirror = Mirror(reflecting: value)
        if isLeaf(value, mirror) { return [String(describing: value)] }
        if depth >= Self.depthMax || lineCount >= Self.linesMax { return ["…"] }
        let name = String(describing: type(of: value))
        switch mirror.displayStyle {
        case .optional:
            return mirror.children.first.map { body($0.value, depth: depth) } ?? ["nil"]
        case .collection:
            return wrap("[", items(mirror.children.lazy.map(\.value), depth), "]")
        case .set:
            // Sorted before elements are left out: otherwise different ones would be left out each
            // time.
            let sorted = mirror.children.map { (key: Self.line(of: $0.value), value: $0.value) }
                .sorted { $0.key < $1.key }
            return wrap("[", items(sorted.lazy.map(\.value), depth), "]")
        case .dictionary: return dictionary(mirror, depth)
        case .tuple: return short(wrap("(", members(mirror, depth), ")"))
        case .enum: return enumeration(value, mirror, depth)
        case .class:
            let identity = ObjectIdentifier(value as AnyObject)
            guard path.insert(identity).inserted else { return ["\(name)(…)"] }
            defer { path.remove(identity) }
            return wrap("\(name)(", inherited(mirror, depth) + members(mirror, depth), ")")
        default: return wrap("\(name)(", members(mirror, depth), ")")
        }
    }

    /// Whether a value is written as it describes itself: a value without parts, or one of the standard library or
    /// Foundation.
    private func isLeaf(_ value: Any, _ mirror: Mirror) -> Bool {
        switch mirror.displayStyle {
        case .collection, .set, .dictionary, .tuple, .optional: return false
        case .enum: return false
        case .none: return true
        default: break
        }
        guard !isDeep || mirror.children.isEmpty, value is any CustomStringConvertible else {
            return false
        }
        let module = String(reflecting: type(of: value)).prefix { $0 != "." }
        return ["Swift", "Foundation", "FoundationEssentials", "Dispatch", "_Concurrency"]
            .contains(module)
    }

    private mutating func items(_ values: some Sequence<Any>, _ depth: Int) -> [[String]] {
        var items: [[String]] = []
        for value in values {
            if lineCount >= Self.linesMax { return items + [["…"]] }
            items.append(lines(value, label: nil, depth: depth + 1))
        }
        return items
    }

    private mutating func members(_ mirror: Mirror, _ depth: Int) -> [[String]] {
        mirror.children.map { child in
            // The parts of a tuple without labels have the labels ".0", ".1" and so on.
            let label = child.label.flatMap { $0.hasPrefix(".") ? nil : $0 }
            return lines(child.value, label: label, depth: depth + 1)
        }
    }

    private mutating func inherited(_ mirror: Mirror, _ depth: Int) -> [[String]] {
        guard let parent = mirror.superclassMirror else { return [] }
        return inherited(parent, depth) + members(parent, depth)
    }

    private mutating func dictionary(_ mirror: Mirror, _ depth: Int) -> [String] {
        if mirror.children.isEmpty { return ["[:]"] }
        let pairs = mirror.children.map { child in
            let pair = Array(Mirror(reflecting: child.value).children.map(\.value))
            return (key: Self.line(of: pair[0]), value: pair[1])
        }
        var items: [[String]] = []
        for pair in pairs.sorted(by: { $0.key < $1.key }) {
            if lineCount >= Self.linesMax {
                items.append(["…"])
                break
            }
            items.append(lines(pair.value, label: pair.key, depth: depth + 1))
        }
        return wrap("[", items, "]")
    }

    private mutating func enumeration(_ value: Any, _ mirror: Mirror, _ depth: Int) -> [String] {
        guard let payload = mirror.children.first else {
            return [value is any CustomStringConvertible ? "\(value)" : ".\(value)"]
        }
        let name = ".\(payload.label ?? "")("
        let parts = Mirror(reflecting: payload.value)
        let lines =
            parts.displayStyle == .tuple
            ? members(parts, depth) : items([payload.value], depth)
        return short(wrap(name, lines, ")"))
    }

    private mutating func json(_ value: JSONValue, depth: Int) -> [String] {
        if depth >= Self.depthMax || lineCount >= Self.linesMax { return ["…"] }
        switch value {
        case .array(let elements):
            return wrap("[", items(elements.lazy.map { $0 as Any }, depth), "]")
        case .object(let members):
            var lines: [[String]] = []
            for member in members {
                lines.append(
                    self.lines(
                        member.value, label: member.key.debugDescription, depth: depth + 1))
            }
            return wrap("{", lines, "}")
        default: return [value.description]
        }
    }

    /// Puts parts between an opening and a closing line. Each part has its own lines.
    private func wrap(_ opening: String, _ parts: [[String]], _ closing: String) -> [String] {
        if parts.isEmpty { return [opening + closing] }
        var lines = [opening]
        for part in parts {
            lines += part.map { "  \($0)" }
            lines[lines.count - 1] += ","
        }
        return lines + [closing]
    }

    /// Joins lines to one, if that is short.
    private func short(_ lines: [String]) -> [String] {
        guard lines.count > 1 else { return lines }
        let line = Self.join(lines)
        return line.count <= Self.shortMax ? [line] : lines
    }
}

/// A type-erased action, which is written as the action itself.
private protocol ActionWrapping {
    associatedtype Value
    var value: Value { get }
}

extension TypedAction: ActionWrapping {}

/// A commit that is only a function, which can't be written.
private protocol FunctionWrapping {}

extension StorageCommit: FunctionWrapping {}
