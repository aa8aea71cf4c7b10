/// A count, a number of bytes or a time, as a document or the code states it.
struct Amount: Equatable {
    /// The seconds of a time, or the number itself.
    private let value: Double
    private let isTime: Bool

    private init(_ value: Double, isTime: Bool) {
        self.value = value
        self.isTime = isTime
    }

    /// Parses `1 MiB + 64 KiB`, `10,000`, `60 s` and the like; nil for anything else.
    init?(stated text: String) {
        var sum = 0.0
        var isTime = false
        for term in text.split(separator: "+", omittingEmptySubsequences: false) {
            let parts = term.split(separator: " ")
            let digits = parts.first?.filter { $0 != "," } ?? ""
            guard let number = Double(digits), digits.allSatisfy(\.isNumber), parts.count <= 2
            else { return nil }
            switch parts.dropFirst().first {
            case nil: sum += number
            case "KiB": sum += number * 1_024
            case "MiB": sum += number * 1_048_576
            case "GiB": sum += number * 1_073_741_824
            case let unit?:
                guard let seconds = Self.seconds[String(unit)] else { return nil }
                sum += number * seconds
                isTime = true
            }
        }
        self.init(sum, isTime: isTime)
    }

    private static let seconds = ["s": 1, "ms": 0.001, "µs": 0.000_001]

    /// Parses `(1 << 20) + (1 << 16)`, `10_000`, `.seconds(7 * 86_400)` and the like; nil for anything
    /// else.
    init?(source text: String) {
        var rest = text.filter { !$0.isWhitespace && $0 != "_" }[...]
        if rest.hasPrefix("Duration") { rest.removeFirst("Duration".count) }
        for (name, unit) in [(".seconds", "s"), (".milliseconds", "ms"), (".microseconds", "µs")]
        where rest.hasPrefix(name) {
            rest.removeFirst(name.count)
            guard let number = Self.sum(&rest), rest.isEmpty else { return nil }
            self.init(Double(number) * (Self.seconds[unit] ?? 1), isTime: true)
            return
        }
        guard let number = Self.sum(&rest), rest.isEmpty else { return nil }
        self.init(Double(number), isTime: false)
    }

    private static func sum(_ text: inout Substring) -> Int? {
        guard var result = product(&text) else { return nil }
        while text.first == "+" {
            text.removeFirst()
            guard let next = product(&text) else { return nil }
            result += next
        }
        return result
    }

    private static func product(_ text: inout Substring) -> Int? {
        guard var result = shift(&text) else { return nil }
        while text.first == "*" {
            text.removeFirst()
            guard let next = shift(&text) else { return nil }
            result *= next
        }
        return result
    }

    private static func shift(_ text: inout Substring) -> Int? {
        guard var result = number(&text) else { return nil }
        while text.hasPrefix("<<") {
            text.removeFirst(2)
            guard let next = number(&text) else { return nil }
            result <<= next
        }
        return result
    }

    private static func number(_ text: inout Substring) -> Int? {
        if text.first == "(" {
            text.removeFirst()
            guard let inner = sum(&text), text.first == ")" else { return nil }
            text.removeFirst()
            return inner
        }
        let digits = text.prefix(while: \.isNumber)
        text = text.dropFirst(digits.count)
        return Int(digits)
    }
}
