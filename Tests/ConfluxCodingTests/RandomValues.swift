import ConfluxCoding
import ConfluxVocabulary

/// Makes random JSON values. A seed decides them, and a failing test prints it.
struct RandomValues {
    private var random: SplitMix64

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
    }

    mutating func number(below bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    mutating func text() -> String {
        let pieces = [
            "a", "é", "e\u{301}", "😀", "\"", "\\", "\n", "\u{0}", "\u{1F}", "/", "~", "\u{7F}",
        ]
        return (0..<number(below: 5)).map { _ in pieces[number(below: pieces.count)] }.joined()
    }

    mutating func value(depth: Int = 4) -> JSONValue {
        switch number(below: depth > 0 ? 8 : 6) {
        case 0: return .null
        case 1: return .bool(number(below: 2) == 0)
        case 2: return .integer(JSONInteger(random.next() >> UInt64(number(below: 64))))
        case 3: return .integer(JSONInteger(Int64(bitPattern: random.next())))
        case 4:
            let value = Double(bitPattern: random.next())
            return .number(value.isFinite ? value : 0.5)
        case 5: return .string(text())
        case 6: return .array((0..<number(below: 5)).map { _ in value(depth: depth - 1) })
        default:
            var object = JSONObject()
            for _ in 0..<number(below: 5) { object[text()] = value(depth: depth - 1) }
            return .object(object)
        }
    }
}

/// The code of the failure that a function throws; nil if it succeeds.
func failure(_ body: () throws -> some Any) -> CodingFailure? {
    do {
        _ = try body()
        return nil
    } catch {
        return error as? CodingFailure
    }
}
