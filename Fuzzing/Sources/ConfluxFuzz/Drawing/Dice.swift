import ConfluxVocabulary

/// Draws values from the fuzzer's bytes, so that an input is a sequence of decisions, and a small
/// change of the input is a small change of the sequence. After the last byte, all further ones are zero.
struct Dice {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) {
        rest = bytes[...]
    }

    /// Whether all bytes are used up.
    var isEmpty: Bool { rest.isEmpty }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    mutating func flag() -> Bool { byte() & 1 == 1 }

    /// A number below a bound of at most 256.
    mutating func below(_ bound: Int) -> Int { Int(byte()) % bound }

    mutating func element<Value>(of values: [Value]) -> Value? {
        values.isEmpty ? nil : values[below(min(values.count, 256))]
    }

    mutating func one<Value: CaseIterable>(of type: Value.Type) -> Value
    where Value.AllCases == [Value] {
        let all = Value.allCases
        return all[below(all.count)]
    }

    mutating func optional<Value>(_ draw: (inout Self) -> Value) -> Value? {
        flag() ? draw(&self) : nil
    }

    mutating func list<Value>(upTo most: Int, _ draw: (inout Self) -> Value) -> [Value] {
        (0..<below(most + 1)).map { _ in draw(&self) }
    }

    /// Takes bytes without interpreting them.
    mutating func bytes(upTo most: Int) -> [UInt8] {
        let count = most < 256 ? below(most + 1) : (Int(byte()) << 8 | Int(byte())) % (most + 1)
        let taken = Array(rest.prefix(count))
        rest = rest.dropFirst(count)
        return taken
    }

    /// A number of the grammar, at most 2⁶³ − 1: a small one, one near a known one, or one at the end of
    /// the range.
    mutating func number(near known: [UInt64]) -> UInt64 {
        let most = UInt64(Int64.max)
        switch below(8) {
        case 0: return UInt64(below(8))
        case 1: return most - UInt64(below(4))
        case 2: return UInt64(1) << UInt64(below(63))
        case 3:
            let base = element(of: known) ?? 0
            return min(base, most - 4) + UInt64(below(4))
        case 4:
            let base = element(of: known) ?? 0
            return base - min(base, UInt64(below(4)))
        default: return min(element(of: known) ?? 1, most)
        }
    }
}
